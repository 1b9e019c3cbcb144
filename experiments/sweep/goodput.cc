#include "experiments/sweep/goodput.h"

#include <algorithm>
#include <cmath>

namespace pfeife {

TimeShares time_shares(double between, const Recovery& recovery) {
  TimeShares shares;
  shares.interval = std::sqrt(2 * recovery.save * between);
  // A failure comes in the middle of an interval, on average.
  shares.saving = shares.interval > 0 ? recovery.save / shares.interval : 0;
  shares.redone = shares.interval / 2 / between;
  shares.restarting = recovery.restart / between;
  shares.useful = std::max(0.0, 1 - shares.saving - shares.redone - shares.restarting);
  return shares;
}

double goodput(double full, double meanwhile, double between, const Recovery& recovery) {
  // A cycle: all devices for `between` seconds, then one less for `repair` seconds.
  const double with_less = std::max(0.0, recovery.repair - recovery.restart);
  const double samples = full * between + meanwhile * with_less;
  return samples * time_shares(between, recovery).useful / (between + recovery.repair);
}

}  // namespace pfeife
