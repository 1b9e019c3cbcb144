// A bound from paths that three ranks share, for schedules that deal every rank two stages.
#pragma once

#include <memory>

#include "planner/search/bound/round_rows.h"
#include "planner/search/bound/round_states.h"

namespace pfeife {

/// Looks for cuts that leave no path above a time, rank by rank: how far both rounds have come, the
/// largest delay and the largest `after` of the ranks so far (RoundRows), of which every second
/// round from there on is to make a path within the time, and the largest way through a second
/// round to its last F, of which the later ranks are. To have come farther with smaller ones is
/// never worse. They are counted in steps, rounded down, so that what is not found is not there.
class RoundBound {
 public:
  /// nullptr: round_rows() has none. Keeps a reference.
  static std::unique_ptr<RoundBound> make(const Candidates& candidates);

  /// Step time (ns) that no cuts go below whose neighbouring stages are linked by values and
  /// gradients and that fit by LiveMemory: not below `least`, a bound, and not above `enough`:
  /// first, in passing, whether that holds, then step by step. Takes about `budget` ns, with what
  /// calls before have left of theirs: counted, not measured. Goes on with what it had to leave.
  double raise(double least, double enough, double budget);
  double work() const { return work_; }

 private:
  /// Where the second round may begin, and how fine delays are counted.
  struct Region {
    std::int32_t first = 0, last = 0;
    double step = 0;
  };
  /// While one rank takes its stages.
  struct Taking {
    std::size_t rank = 0;
    RoundState from;
    RoundLevel level;
    double delay = 0, after = 0, passed = 0;  ///< largest so far, at least
    /// What those of this rank have to stay below.
    double after_below = 0, passed_below = 0;
    std::int32_t q_from = 0, q = 0;  ///< where the first stage may end
    std::int32_t z_from = 0, z = 0;  ///< where the second one may
  };

  RoundBound(const Candidates& candidates, std::vector<RoundRows> rows);
  double next_time(double least, double high) const;
  bool shows(double bound, double most_work);
  void begin(double time);
  bool split(const Region& region);
  bool possible(const Region& region);
  void set_levels(double room);
  void set_needs();
  void extend(std::size_t rank, const RoundLevel& level, const RoundState& from);
  void extend_after(Taking t);
  void extend_passed(Taking t);
  std::size_t level(double time) const;
  double delay(const Taking& t, std::int32_t q) const;
  double after(const Taking& t, std::int32_t q, std::int32_t z) const;
  double passed(const Taking& t, std::int32_t q, std::int32_t z) const;
  bool fits_second(const Taking& t, std::int32_t q, std::int32_t z) const;
  bool fits(const Taking& t, std::int32_t q, std::int32_t z) const;
  void take(const Taking& t);

  const Candidates* candidates_;
  std::vector<RoundRows> rows_;                   // [rank]
  std::vector<double> least_second_;              // [position]
  std::vector<double> limit_;                     // [rank] bytes
  double time_ = 0;                               // that no path is to be above
  std::vector<std::vector<std::int32_t>> reach_;  // [stage][begin] by its own paths
  Region region_;
  /// [level] of a delay or an `after`, and of `passed`; one more: no end.
  std::vector<double> floor_, passed_floor_;
  std::vector<std::vector<std::int32_t>> need_;  // [rank][level] begin of the second round
  RoundStates now_, next_;
  std::vector<Region> open_;     // to be looked at for it
  std::optional<Region> found_;  // where there were cuts the last time
  double some_;                  // bound that was not to be shown
  double tried_ = 0;             // bound that was tried in passing
  mutable double work_ = 0;
  double allowed_ = 0;  // by all calls
};

}  // namespace pfeife
