// Paths through the two rounds of a schedule that deals every rank two stages: how long the first
// round holds up a rank before the second begins there, how long the rank is busy with the second,
// and how long the first round goes on behind it.
//
// Rank r has stage r = [x, q) of the first round and stage D + r = [y, z) of the second. Each row
// is a sum of what depends on x, q, y and z alone; it never rises with x or y and never falls with
// q or z. Transfers are left out.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "planner/search/price/candidate.h"

namespace pfeife {

/// A sum over the ends of both stages of a rank.
class RoundRow {
 public:
  explicit RoundRow(std::size_t positions);
  /// `count` times what the rank's stage of the round takes of `prefix`.
  void add(std::size_t round, const std::vector<double>& prefix, double count);
  /// `count` times what lies before the stage's begin, or before its end.
  void add_before(std::size_t round, const std::vector<double>& prefix, double count);
  void add_until(std::size_t round, const std::vector<double>& prefix, double count);
  void add(double constant);

  double operator()(std::int32_t x, std::int32_t q, std::int32_t y, std::int32_t z) const {
    return begin_[0][at(x)] + end_[0][at(q)] + begin_[1][at(y)] + end_[1][at(z)];
  }

 private:
  static std::size_t at(std::int32_t position) { return static_cast<std::size_t>(position); }
  std::array<std::vector<double>, 2> begin_, end_;  // [round][position]
};

/// The rows of one rank, ns. For ranks a, c <= b no step is shorter than
/// delay(a) + second(b) + after(c), whatever the cuts; the same with `turned` and `leaving`. A
/// delay or an `after` may be left out.
struct RoundRows {
  /// The way to the rank and all that it does until it first begins with the second round, less
  /// the way that the second round has come by then.
  RoundRow delay;
  /// The way to stage D + r in the second round, the rank's row from its first F there to its last
  /// B or I there, and the way back from there. `turned`: first on to the last stage and back.
  RoundRow second, turned;
  /// What the rank does after that, less the way back from stage D + r; likewise until the first
  /// round's last B or I leaves it, and the way from there to the first stage.
  RoundRow after, leaving;
  /// The way to the rank, and all it does. Not above the step time.
  RoundRow all;
  /// What the rank does from its first F of the second round until its last one begins there. The
  /// microbatch of that goes on: for ranks a <= b < c no step is shorter than
  /// delay(a) + passing(b) + rest(c), or than delay(a) + passing(b) + again(c) + after(d), d <= c,
  /// the same with leaving(d).
  RoundRow passing;
  /// The way to stage D + r in the second round and all that the rank does from its last F there.
  RoundRow rest;
  /// The same until its last B or I there, and the way back from there.
  RoundRow again;
  /// Bytes that the rank holds at least at its fullest moments. Not above its limit.
  std::vector<RoundRow> held;
};

/// [rank]; nullopt: the schedule has not two stages dealt to every rank in turn, or its ranks take
/// not the same microbatch first in the second round, onward and back, or last onward, or last
/// back.
std::optional<std::vector<RoundRows>> round_rows(const Candidates& candidates);

/// [position] ns: of a delay, a second and an `after` that make a path, the second is at least so
/// long if the segments from that position on are still to come.
std::vector<double> least_second(const Candidates& candidates);

}  // namespace pfeife
