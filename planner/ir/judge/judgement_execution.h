// A schedule's rows executed without time. Internal to planner/ir, of judge_deadlock().
//
// An item is a compute cell, an optimizer step, a transfer or a reduction. Items stand in lines:
// the line of a rank (what holds it, in row order; a reduction that blocks holds each of its ranks
// at the last of its REDUCE_GRADs there) and, if transfers queue, the lines of its queues. An item
// runs once it is first in all its lines and everything it needs has run. Whatever is left over
// then waits for something left over, so there is a circle.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {

using Item = std::uint32_t;
using Line = std::uint32_t;

/// What an item does in the rows.
enum class Role { Compute, Optimizer, Transfer, Reduction };
struct Entry {
  Role role = Role::Compute;
  Place place;                    ///< of a transfer: the SEND
  std::optional<Place> received;  ///< of a transfer: the RECV
  std::vector<Place> parties;     ///< of a reduction: its REDUCE_GRADs or REDUCE_NORMs, sorted
  std::vector<Line> lines;
  std::vector<Item> needs;
};

/// Borrows the reading and the semantics.
class Execution {
 public:
  Execution(const Reading& reading, const Semantics& semantics);

  /// Runs all that can run; true if that is everything.
  bool run();

  // What there is, and what came of it.
  const Entry& entry(Item item) const { return items_[item]; }
  std::size_t items() const { return items_.size(); }
  std::size_t lines() const { return lines_.size(); }
  bool done(Item item) const { return done_[item]; }
  /// The item that holds a line up; none if all of it ran.
  std::optional<Item> head(Line line) const {
    if (first_[line] == lines_[line].size()) return std::nullopt;
    return lines_[line][first_[line]];
  }
  /// The rank whose row a line follows.
  std::uint32_t owner(Line line) const;

 private:
  void index_edges();
  void index_ties();
  void add_cells();
  void add_transfers();
  void add_reductions();
  std::optional<Line> queue_at(std::uint32_t rank, std::uint32_t other, bool sends);
  void stand_in_line();
  void stand_in_line(Item item, Place place);
  void add_needs();
  void add_needs_of_norm();
  void add_needs_of(const Action& action, Item item);
  void need_value(Item item, std::uint32_t edge, Direction direction, MicrobatchId m);
  void need(Item item, const std::optional<Place>& place);
  void need_of_all(Item item, MicrobatchId m, std::optional<Place> Life::*what);
  bool is_first(Item item) const;
  void finish(Item item, std::deque<Item>& candidates);
  const Cell& cell(Place p) const { return reading_.schedule.rows[p.rank][p.position]; }
  Item& item_at(Place p) { return item_at_[p.rank][p.position]; }

  const Reading& reading_;
  const Semantics& semantics_;
  std::vector<Entry> items_;
  std::vector<std::vector<Item>> lines_;                   // the first ones are the ranks'
  std::vector<std::vector<Item>> item_at_;                 // [rank][position]
  std::vector<std::vector<std::uint32_t>> into_, out_of_;  // [stage] edges
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, Line> queue_;
  std::vector<Item> transfer_;               // [passage]
  std::map<std::uint32_t, Item> reduction_;  // [group]
  std::optional<Item> norm_;
  std::vector<std::uint32_t> group_;  // [stage]
  std::vector<bool> tied_;            // [stage]
  std::vector<std::vector<Item>> users_;
  std::vector<std::size_t> missing_,
      first_;  // [item] needs that have not run; [line] its first item
  std::vector<bool> done_;
};

}  // namespace pfeife::judgement
