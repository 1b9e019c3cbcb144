// A bound from paths that three ranks share, for schedules that deal every rank two stages.
#pragma once

#include <memory>

#include "planner/search/round_rows.h"

namespace pfeife {

/// Looks for cuts that leave no path above a time, rank by rank: how far both rounds have come, and
/// the largest delay and the largest `after` of the ranks so far (RoundRows), of which every second
/// round from there on is to make a path within the time. To have come farther with smaller ones is
/// never worse. Both are counted in steps, rounded down, so that what is not found is not there.
class RoundBound {
 public:
  /// nullptr: round_rows() has none. Keeps a reference.
  static std::unique_ptr<RoundBound> make(const Candidates& candidates);

  /// Step time (ns) that no cuts go below whose neighbouring stages are linked by values and
  /// gradients and that fit by LiveMemory: not below `least`, a bound, and not above `enough`, by
  /// halving. Takes about `budget` ns at most: counted, not measured.
  double raise(double least, double enough, double budget);
  double work() const { return work_; }

 private:
  /// How far the ranks so far have come, and the largest of theirs.
  struct State {
    std::int32_t x = 0, y = 0;    ///< where the next rank's stages begin
    double delay = 0, after = 0;  ///< ns, at least
  };
  using States = std::vector<State>;
  /// Where the second round may begin, and how fine delays are counted.
  struct Region {
    std::int32_t first = 0, last = 0;
    double step = 0;
  };
  /// While one rank takes its stages.
  struct Taking {
    std::size_t rank = 0;
    State from;
    double delay = 0, after = 0;     ///< largest so far, at least
    double after_below = 0;          ///< what this rank's has to stay below
    std::int32_t q_from = 0, q = 0;  ///< where the first stage may end
    std::int32_t z_from = 0, z = 0;  ///< where the second one may
  };

  RoundBound(const Candidates& candidates, std::vector<RoundRows> rows);
  bool possible(double time);
  bool possible(const Region& region);
  void set_levels(double room);
  void set_needs();
  bool has_room() const { return work_ < most_work_; }
  void extend(std::size_t rank, std::size_t delay, std::size_t after, const State& from);
  void extend(Taking t, std::size_t delay, std::size_t after);
  std::size_t level(double time) const;
  double delay(const Taking& t, std::int32_t q) const;
  double after(const Taking& t, std::int32_t q, std::int32_t z) const;
  bool fits_second(const Taking& t, std::int32_t q, std::int32_t z) const;
  bool fits(const Taking& t, std::int32_t q, std::int32_t z) const;
  void take(const Taking& t, States& into) const;
  void keep_best();

  const Candidates* candidates_;
  std::vector<RoundRows> rows_;       // [rank]
  std::vector<double> least_second_;  // [position]
  std::vector<double> limit_;         // [rank] bytes
  double time_ = 0;
  std::vector<std::vector<std::int32_t>> reach_;  // [stage][begin] by its own paths
  Region region_;
  std::vector<double> floor_;  // [level] of a delay or an `after`; one more: no end
  std::size_t levels_ = 0;
  std::vector<std::vector<std::int32_t>> need_;  // [rank][level] begin of the second round
  std::vector<States> now_, next_;               // [delay level * levels + after level]
  std::optional<Region> found_;                  // where there were cuts the last time
  mutable double work_ = 0;
  double most_work_ = 0;
};

}  // namespace pfeife
