// What planning came to: the plans that were found, what bounds them, and why the others are not
// among them. One value from the search to the report.
//   for (const LostSchedule& lost : planned.lost) std::puts(lost.schedule.c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/result/certificate.h"
#include "planner/ir/result/covered.h"
#include "planner/ir/result/need.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/result/priced.h"
#include "planner/ir/result/reason.h"
#include "planner/ir/result/result.h"

namespace pfeife {

/// Why nothing fits: the rank that lacks most in the least bad case.
struct Infeasible {
  RankId rank;
  Bytes needed{0}, available{0};
  ScheduleSpec spec;  ///< of the least bad case
  Partition partition;
  bool proven = false;  ///< no cuts of any listed schedule fit; false: none was found

  Bytes lacking() const { return needed - available; }
};

/// What a host lacks for a plan that fits the devices, and the plan's name.
struct HostLack {
  Shortage shortage;
  std::string plan;
};

/// Why a schedule is not among the plans of a search.
struct Rejected {
  ScheduleSpec spec;
  Reason reason;
  std::optional<Nanoseconds> bound = std::nullopt;  ///< no cuts of it have a smaller estimate
};

/// A schedule that was considered, and why it is not the chosen plan's.
struct LostSchedule {
  std::string schedule;  ///< "looped, V=2, prefetch=3"
  std::string family;
  Reason reason;
  std::optional<Nanoseconds> bound;  ///< no cuts of it have a smaller estimate
  friend bool operator==(const LostSchedule&, const LostSchedule&) = default;
};

/// Where a budget ended a search with something left to try.
struct Unfinished {
  enum class What : std::uint8_t {
    OpenChoices,  ///< some ways to settle what is open were searched with little effort alone
    SharedLinks,  ///< links bind, and some changes of the best plans were not simulated
  };
  What what = What::OpenChoices;
  std::size_t left = 0;  ///< OpenChoices: how many
  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};
/// "unfinished: 3 of the choices that are open may be faster, but ...".
std::string to_string(const Unfinished& unfinished);

/// Where cuts lie that might lie between blocks or anywhere, and what that costs.
struct CutPlaces {
  bool between_blocks = true;
  std::optional<Nanoseconds> blocks, anywhere;  ///< the best steps; absent: none was found
  bool simulated = false;                       ///< else they are estimates
  friend bool operator==(const CutPlaces&, const CutPlaces&) = default;
};
/// How much longer a step takes than with cuts anywhere, a share; 0 where that is not known.
double cost_of_blocks(const CutPlaces& places);
/// "cuts lie between blocks: 0.3 % longer than with others, estimated".
std::string to_string(const CutPlaces& places);

/// A lower bound on the estimates of plans: which plans, and what proves it.
struct Claim {
  std::optional<Bound> bound;    ///< of the given cuts, if they are; empty = nothing is claimed
  std::vector<Covered> covered;  ///< the plans that it holds for
  Uncertified uncertified;       ///< and besides, without a certificate
  /// Proves the bound, or that nothing fits, to those who do not trust the search. Where the bound
  /// is one that certificates cannot say, it proves less: Certificate::bound. Empty unless asked
  /// for, if neither is proven, or under the reference memory rule.
  std::shared_ptr<const Certificate> certificate;
};

/// The part of an answer that a case's record keeps as it is.
struct RecordedAnswer {
  std::vector<SearchStep> history;        ///< best time and bound after each step of the search
  std::vector<Alternative> alternatives;  ///< of what is open; the best first. Empty if nothing is
  std::vector<TriedChange> tried;         ///< if nothing fits: what would help, and what would not
  std::vector<LostSchedule> lost;         ///< empty until a plan is chosen
  std::vector<Unfinished> unfinished;
  std::optional<CutPlaces> cut_places;  ///< absent: that was not open
  std::string handed_from;              ///< the case that found the chosen plan; "" = this one
  /// No plan that the bound covers is simulated faster, transfers sharing links. No certificate
  /// says it.
  std::optional<Nanoseconds> links_bound;
  /// An order built for its costs may be below the bound, of this problem or another that was open.
  bool orders_left_out = false;
  friend bool operator==(const RecordedAnswer&, const RecordedAnswer&) = default;
};

/// Written by a Pool alone (planner/search/pool).
struct Answer : RecordedAnswer, Claim {
  std::vector<Priced> plans;  ///< best first; empty if infeasible
  /// The best of every schedule that has a plan; best first. `plans` are the first of them. Empty
  /// once a simulator has chosen among them.
  std::vector<Priced> all;
  /// Among all plans that were judged and are nearly as fast as the best of their schedule, or
  /// whose order is built, those that are both slower and fuller than none; the fastest first.
  std::vector<Priced> front;
  std::optional<Infeasible>
      infeasible;  ///< set iff plans is empty and some schedule could be built
  /// Where plans may offload and none fits: the smallest shortage of a host.
  std::optional<HostLack> host_lack;
  std::vector<Rejected> rejected;
  Recompute recompute = Recompute::None;  ///< Problem::recompute: what bound and plans are of
  std::size_t candidates = 0;             ///< evaluated
  std::size_t effort = 0;  ///< of SearchOptions::iterations, spent; 0 = of given cuts
  double seconds = 0;      ///< of the wall, that planning a case took
};

/// What the bound covers, in words, with what no certificate speaks of; "" = there is no bound.
std::string covered_text(const Answer& answer);
/// What the bound on those orders covers that the search's own leaves out (Covered::left_out).
std::string left_out_text(const Answer& answer);
/// The bound as a plan has it, with what no certificate speaks of.
std::optional<Bound> plan_bound(const Answer& answer);

}  // namespace pfeife
