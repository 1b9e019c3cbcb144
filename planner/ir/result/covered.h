// What a lower bound holds for, as data; the words for people are made of it here alone.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// A class of plans that a bound covers: cuts, schedules and recomputation as its Bound has them,
/// and what it does not say.
struct Covered {
  Bound bound;
  std::string layer_order = "captured";
  std::size_t layers = 0;
  std::size_t listed = 0;    ///< schedules
  bool except_last = false;  ///< the last microbatch of what is recomputed is kept
  /// Schedules whose placements are covered whatever the order of their actions.
  std::set<ScheduleSpec> any_order = {};
  /// Schedules built for the costs, some of whose orders may be below the bound; none is below the
  /// time.
  std::set<ScheduleSpec> left_out = {};
  Nanoseconds left_out_bound{0};
  bool hides_collectives = false;  ///< schedules that run actions side by side
  bool offload = false;            ///< whatever share of what they save plans offload
  friend bool operator==(const Covered&, const Covered&) = default;
};

/// What a bound holds for besides, of which no certificate speaks.
struct Uncertified {
  std::set<ScheduleSpec> any_order = {};  ///< as Covered::any_order
  bool in_turn = false;                   ///< their microbatches in turn: all orders were tried
  std::set<std::int64_t> microbatch_sizes = {};
  std::set<std::string> layer_orders = {};
  bool device_orders = false;
  bool without_recomputation = false;  ///< some of these, with no stage recomputed alone
  friend bool operator==(const Uncertified&, const Uncertified&) = default;
};

/// A bound on the estimates of a class of plans that has the plan it is shown beside.
struct CoveringBound {
  Nanoseconds time{0};
  std::string of;  ///< the class in a few words, as class_name() has it
  friend bool operator==(const CoveringBound&, const CoveringBound&) = default;
};
/// "1f1b", "zb_h1 and zb_h2", "12 families": of which families the schedules are.
std::string class_name(const std::set<ScheduleSpec>& schedules);

/// "all cuts of the captured order of 37 layers, 14 listed schedules in their placements, within
/// the memory limits, and every action order of zb_greedy's placements"; "" = nothing is covered.
std::string to_string(const std::vector<Covered>& covered);
/// "every action order of zb_greedy's placements, all cuts of the captured order of 37 layers; not
/// 14 listed schedules, whose bound is 24.3 ms"; "" = nothing is left out.
std::string left_out_text(const Covered& covered);
/// "the other microbatch sizes of the global batch: 1, 2; every order of the devices"; "" =
/// nothing.
std::string to_string(const Uncertified& uncertified);

}  // namespace pfeife
