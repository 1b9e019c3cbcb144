// How a schedule is judged; internal to this folder.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/ir/judge/validate.h"

namespace pfeife::judgement {

// The parts of validate(), one file each. Internal to planner/ir: everybody else includes
// validate.h. Nothing here uses lowering or the DependencyGraph: the judge has its own reading of a
// schedule.

/// Where an action stands.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t position = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// What the rows say about one stage and one microbatch or slice; the first place counts if there
/// are two.
struct Life {
  std::uint32_t stage = 0, microbatch = 0;
  std::optional<Place> forward, backward, backward_input, backward_weight, offload, reload;
  std::optional<Place> share, rest;  ///< S and T of the output layer that all ranks share

  /// Where gradients of inputs are made.
  std::optional<Place> gradient() const { return backward ? backward : backward_input; }
  /// Where the last part of the backward pass is.
  std::optional<Place> last() const { return backward ? backward : backward_weight; }
};

/// What the rows say about one value (or gradient) on its way along an edge of the StageGraph.
struct Passage {
  std::uint32_t edge = 0;
  Direction direction = Direction::Forward;
  std::uint32_t microbatch = 0;
  std::optional<Place> sent, received;
};

/// The schedule as the judge reads it: actions in range, each kept once, in sorted tables.
struct Reading {
  const Schedule& schedule;
  const Requirements& required;
  std::vector<std::optional<std::uint32_t>>
      home;                       ///< [stage] first rank that has one of its actions
  std::vector<bool> scattered;    ///< [stage] on several ranks: what it hands over cannot be judged
  std::vector<Life> lives;        ///< sorted by (stage, microbatch)
  std::vector<Passage> passages;  ///< sorted by (edge, direction, microbatch)

  const Life* life(std::size_t stage, std::size_t microbatch) const;
  std::span<const Life> lives_of(std::size_t stage) const;
  const Passage* passage(std::size_t edge, Direction direction, std::size_t microbatch) const;
  std::span<const Passage> passages_of(std::size_t edge, Direction direction) const;

  MicrobatchId microbatch(std::uint32_t number) const {
    return MicrobatchId{number, static_cast<std::int32_t>(required.slices)};
  }
  const StageGraph::Edge& edge(std::size_t e) const { return required.stages.edges[e]; }
  bool placed(const StageGraph::Edge& e) const {
    const std::size_t from = e.from.index(), to = e.to.index();
    return home[from] && home[to] && !scattered[from] && !scattered[to];
  }
  /// Both ends are placed, on different ranks: the value has to travel.
  bool travels(const StageGraph::Edge& e) const {
    return placed(e) && home[e.from.index()] != home[e.to.index()];
  }
};

/// Collects violations. `hangs` remembers those without which an execution cannot be judged.
class Findings {
 public:
  void add(Place place, std::string message, bool hangs = true) {
    violations_.push_back({RankId{place.rank}, place.position, std::move(message)});
    hangs_ = hangs_ || hangs;
  }
  /// Something that is not there: placed at the end of the rank's row.
  void add_missing(const Reading& reading, std::uint32_t rank, std::string message);

  bool hangs() const { return hangs_; }
  std::vector<Violation> sorted() &&;

 private:
  std::vector<Violation> violations_;
  bool hangs_ = false;
};

/// Reads the rows; finds what is out of range, twice, on a second rank, or has no place in this
/// kind of schedule.
Reading read(const Schedule& schedule, const Requirements& required, Findings& findings);
/// Everything there that must be, F before B, I before W, OFFLOAD and RELOAD between F and B or I,
/// slices in order, local values made before they are used. (As all that a slice or a copy waits
/// for in its stage is in one row, rows that pass this judge cannot hang for it.)
void judge_lives(const Reading& reading, Findings& findings);
/// S and T of every rank and microbatch, where all ranks share the output layer: in one order on
/// all ranks, T behind S, and on the last stage F, S (and T, with two barriers) and B in this
/// order.
void judge_head(const Reading& reading, Findings& findings);
/// Every SEND with its RECV, between the maker and the user of its value, in the same order on both
/// sides.
void judge_transfers(const Reading& reading, Findings& findings);
/// UNSHARD, RESHARD, REDUCE_GRAD, REDUCE_NORM and OPTIMIZER_STEP around the computation.
void judge_state(const Reading& reading, Findings& findings);
/// Runs the rows under `semantics`; a deadlock is told by its smallest circle of waits.
void judge_deadlock(const Reading& reading, const Semantics& semantics, Findings& findings);

/// The numbers below `count` that are not in `sorted_numbers`, as ranges; "" if there are none.
/// Numbers of slices are written as such.
std::string ranges_missing(std::span<const std::uint32_t> sorted_numbers, std::uint32_t count,
                           std::size_t slices = 1);

// A schedule's rows executed without time. Internal to planner/ir, of judge_deadlock().
//
// An item is a compute cell, an optimizer step, a transfer or a reduction. Items stand in lines:
// the line of a rank (what holds it, in row order; a reduction that blocks holds each of its ranks
// at the last of its REDUCE_GRADs there) and, if transfers queue, the lines of its queues. An item
// runs once it is first in all its lines and everything it needs has run. Whatever is left over
// then waits for something left over, so there is a circle.

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
