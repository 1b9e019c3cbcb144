// What failures leave of a training run's speed: work saved at Young's interval, work done again,
// restarts. Failures come at a constant rate, independent of one another. First order: saving and
// restarting take little beside the time between failures. Not modelled: failures while a restart
// or a repair is under way, saves beside computation, devices that fail more often than others.
#pragma once

#include <cstddef>

namespace pfeife {

/// Unplanned stops that a run of many devices had.
struct StopRate {
  double stops = 419, days = 54,
         devices = 16'384;  ///< Llama 3 (Grattafiori et al. 2024, sec. 3.3.4)
  /// Mean seconds between stops of so many devices.
  double seconds_between(std::size_t count) const {
    return days * 86'400 * devices / (stops * static_cast<double>(count));
  }
};

/// Seconds of each failure.
struct Recovery {
  double save = 0;     ///< writes a checkpoint, while nothing is computed
  double restart = 0;  ///< from a failure until the steps go on from the last checkpoint
  double repair = 0;   ///< until the lost device, or another in its place, is there
};

/// Shares of the time of a run that always has all its devices; `useful` is the rest.
struct TimeShares {
  double interval = 0;  ///< seconds of steps between two saves: sqrt(2 save between) (Young 1974)
  double saving = 0, redone = 0, restarting = 0, useful = 0;
};
/// `between`: mean seconds between failures. useful is 0 where nothing is left.
TimeShares time_shares(double between, const Recovery& recovery);

/// Samples per second over a long run in which a device is lost every `between` seconds and is back
/// `repair` seconds later. `full`: with all devices, without failures; `meanwhile`: the same until
/// the device is back (0: nothing is computed), after which all are restarted. The rate of failures
/// is the same meanwhile.
double goodput(double full, double meanwhile, double between, const Recovery& recovery);

}  // namespace pfeife
