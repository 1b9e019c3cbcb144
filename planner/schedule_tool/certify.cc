#include "planner/schedule_tool/certify.h"

#include <algorithm>
#include <atomic>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/result/priced.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedule_tool/certified_row.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

using enum StageBounds::Amount;
using enum CertifiedNode::Then;
__extension__ using Big = __int128;
constexpr Big kMost = Big{1} << 53;    // of weights, as of an amount of the whole model
constexpr Big kNever = Big{1} << 124;  // above every sum of amounts times weights
constexpr Big kReached = kNever / 2;   // above those of stages that some cuts have
using Sums = std::vector<Big>;         // [position]
/// Amounts of a stage or weights of them; messages where it begins, and what must wait there, if it
/// takes no time; of stage 0: paths, limits.
enum : std::size_t {
  kPass = kAmounts,
  kUp = kPass + 4,
  kBack,
  kWaits,
  kPaths = kWaits + 2,
  kLimits,
  kAll
};
using Counts = std::vector<std::array<Big, kAll>>;                // [stage]
using Region = std::vector<std::vector<StageBounds::Positions>>;  // [stage][its end] its begins

void require(bool holds, const char* otherwise) {
  if (!holds) throw ConfigError({}, otherwise);
}

class ProofCheck {
 public:
  /// Counts in `cuts` those that it looks at one by one.
  ProofCheck(const Certificate& c, const CertifiedProof& proof, const Placement& placement,
             const StageBounds& bounds, std::atomic<std::size_t>& cuts)
      : c_(c), proof_(proof), placement_(placement), bounds_(bounds), cuts_(cuts) {
    if (!proof.any_order) {
      require(!family(proof.spec.family).built_for_costs, "an order that is not given");
      const Nanoseconds ns{1};
      schedule_ = generate(proof.spec);
      const auto lowered = lower(schedule_, uniform_costs(stages_, ns, ns, ns, ns), placement_);
      graph_ = dependencies(lowered, chain(stages_), placement_, {});
    }
    for (const CertifiedMoment& moment : proof.moments) known_.push_back(held(moment));
    for (std::uint32_t m = 0; m < known_.size(); ++m) fits_.push_back({{m, 1}});
    for (const CertifiedPath& path : proof.paths)
      known_.push_back(proof.any_order ? row(path) : walk(path)), known_.back()[0][kPaths] = 1;
  }

  void check() const {
    if (stages_ > bounds_.last()) return;  // there are no cuts
    std::vector<Region> open{root()};
    for (const CertifiedNode& node : proof_.tree) {
      require(!open.empty(), "the tree goes on after all cuts are covered");
      Region region = std::move(open.back());
      open.pop_back();
      bool left = true;
      for (const auto* all : {&fits_, &node.weights, &fits_})
        for (const CertifiedWeights& weights : *all) left = left && filter(region, weights);
      if (node.then == Nothing)
        require(!left, "a region may have faster cuts than the bound");
      else if (node.then == Each && !proof_.any_order)
        each(region, 0, 0, {});
      else
        split(region, node, open);
    }
    require(open.empty(), "the tree ends before all cuts are covered");
  }

 private:
  /// What the tasks on a path take; every step is an edge of the dependency graph.
  Counts walk(const CertifiedPath& path) const {
    const auto turn = [&](const Edge& edge) {
      const Task& from = graph_.tasks[edge.from.index()];
      if (edge.kind == EdgeKind::RankOrder) return 'r';
      if (from.kind != TaskKind::Transfer) return 'd';
      return std::get<Action>(from.cell).direction == Direction::Forward ? 'f' : 'b';
    };
    Counts counts(stages_);
    const auto count = [&](const Action& a) {
      auto& of = counts[a.stage.index()];
      of[kForward] += a.op == Op::Forward;
      of[kInput] += makes_input_gradient(a.op);
      of[kWeight] += makes_weight_gradient(a.op);
      of[kStep] += a.op == Op::OptimizerStep;
      if (a.op != Op::Send) return;
      ++(a.direction == Direction::Forward ? counts[a.stage.index() + 1][kUp] : of[kBack]);
    };
    const Task* at = nullptr;
    for (const Task& task : graph_.tasks)
      if (task.kind != TaskKind::Transfer && task.rank.index() == path.rank) at = &task;
    require(at != nullptr, "a path on no rank");
    for (std::size_t k = 0;; ++k) {
      for_each_action(at->cell, count);
      if (k == path.turns.size()) return counts;
      const auto edges = graph_.edges_into(TaskId{at - graph_.tasks.data()});
      const auto edge = std::ranges::find(edges, path.turns[k], turn);
      require(edge != edges.end(), "a path takes a step that the schedule does not have");
      at = &graph_.tasks[edge->from.index()];
    }
  }

  Counts row(const CertifiedPath& path) const {
    Counts counts(stages_);
    const auto of = row_stages(path, proof_.spec, placement_.rank_of_stage);
    for (std::size_t s = 0; s < stages_; ++s) {
      counts[s] = {of[s].forward, of[s].input, of[s].weight, of[s].step};
      counts[s][kUp] = of[s].up, counts[s][kBack] = of[s].back;
      counts[s][kWaits] = of[s].waits_forward, counts[s][kWaits + 1] = of[s].waits_back;
    }
    return counts;
  }

  /// What a rank holds at a moment; if stages may be recomputed, what F saves only in B or I.
  Counts held(const CertifiedMoment& moment) const {
    require(moment.rank < schedule_.ranks(), "a moment of no rank");
    Counts counts(stages_);
    std::vector<Action> row;
    for (const Cell& cell : schedule_.rows[moment.rank])
      for_each_action(cell, [&](const Action& a) { row.push_back(a); });
    require(moment.action < row.size(), "a moment of no action");
    for (std::size_t k = 0; k <= moment.action; ++k) {
      auto& of = counts[row[k].stage.index()];
      const bool now = k == moment.action;
      of[kPass + static_cast<std::size_t>(row[k].op)] = now;
      of[kSaved] += row[k].op == Op::Forward;
      of[kSaved] -= !now && makes_input_gradient(row[k].op);
      of[kWeightSaved] += !now && row[k].op == Op::BackwardInput;
      of[kWeightSaved] -= !now && row[k].op == Op::BackwardWeight;
    }
    counts[0][kLimits] = c_.memory_limit[moment.rank].value;
    for (std::size_t s = 0; s < stages_; ++s) {
      auto& of = counts[s];
      of[kFixed] = placement_.rank_of_stage[s].index() == moment.rank;
      if (c_.recompute != Recompute::None) of[kSaved] = of[kPass + 1] + of[kPass + 2];
    }
    return counts;
  }

  static void for_each_stage(const auto& begins, const auto& visit) {
    for (std::size_t q = 0; q < begins.size(); ++q)
      for (std::size_t p = begins[q].begin; p < begins[q].end; ++p) visit(p, q);
  }
  /// Leaves of every interval what lies between the first and the last begin that `may` be.
  static void shrink(auto& begins, const auto& may) {
    for (std::size_t q = 0; q < begins.size(); ++q) {
      auto& [begin, end] = begins[q];
      while (begin < end && !may(begin, q)) ++begin;
      while (begin < end && !may(end - 1, q)) --end;
    }
  }
  /// All cuts of the claim. A stage is busy N times a step, so none that matters takes bound / N.
  Region root() const {
    Region all(stages_);
    require(proof_.least_load.size() == stages_, "not one least load a stage");
    for (std::size_t s = 0; s < stages_; ++s) {
      for (std::size_t q = 0; q <= bounds_.last(); ++q) all[s].push_back({0, q});
      shrink(all[s], [&](std::size_t p, std::size_t q) {
        const Big load = bounds_.load(s, p, q);
        return proof_.least_load[s] <= load && proof_.spec.microbatches * load < c_.bound;
      });
    }
    return all;
  }
  void split(const Region& region, const CertifiedNode& node, std::vector<Region>& open) const {
    require(node.stage < stages_, "a split of no stage");
    for (const bool above : {true, false})
      shrink(open.emplace_back(region)[node.stage], [&](std::size_t p, std::size_t q) {
        const Big what = node.then == SplitLoad ? bounds_.load(node.stage, p, q) : Big{q};
        return (what > node.threshold) == above;
      });
  }

  /// The weighted sum of counts.
  Counts weighted(const CertifiedWeights& weights) const {
    Counts y(stages_);
    for (const auto& [of, weight] : weights) {
      require(of < known_.size() && weight >= 0 && weight < kMost, "a weight out of range");
      for (std::size_t s = 0; s < stages_; ++s)
        for (std::size_t k = 0; k < kAll; ++k)
          require((y[s][k] += weight * known_[of][s][k]) < kMost, "weights too large together");
    }
    return y;
  }
  /// What crosses where stage s begins: adds it to `once`, for every position that may be reached.
  /// Where it need not be there the weights say nothing: no cuts through the position are slow.
  void add_transfers(const Region& region, const Counts& y, std::size_t s, const Sums& before,
                     Sums& once) const {
    std::vector<StageBounds::Positions> ends(once.size(), {once.size(), 0});  // [begin]
    for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
      ends[p] = {std::min(ends[p].begin, q), q + 1};
    });
    // Stages of one rank send nothing to one another, and are not what `linked` speaks of.
    const bool linked =
        proof_.linked && placement_.rank_of_stage[s - 1] != placement_.rank_of_stage[s];
    for (const bool back : {false, true})
      for (std::size_t q = 0; q < once.size() && y[s][kUp + back] + y[s][kWaits + back] > 0; ++q) {
        if (before[q] >= kReached || ends[q].end == 0) continue;
        const auto time = bounds_.message(s, region[s - 1][q], q, ends[q], back, linked);
        once[q] = time ? std::max(-kNever, once[q] + y[s][kUp + back] * time->count()) : -kNever;
      }
  }

  /// Takes out stages that only lie on cuts whose weighted sum is bound or more. False: all.
  bool filter(Region& region, const CertifiedWeights& weights) const {
    const Counts y = weighted(weights);
    const Big most = y[0][kPaths] * (c_.bound - 1) + y[0][kLimits];
    const std::size_t n = bounds_.last(), passes = y[0][kLimits] > 0 ? StageBounds::kPasses : 0;
    // What a stage adds where it begins, where it ends, and while its passes run.
    std::vector<Sums> begin(stages_, Sums(n + 1, 0)), end = begin;
    const auto cost = [&](std::size_t s, std::size_t p, std::size_t q) {
      Big sum = begin[s][p] + end[s][q];
      for (std::size_t pass = 0; pass < passes; ++pass)
        if (const Big w = y[s][kPass + pass]; w > 0) sum += w * bounds_.temporary(pass, p, q);
      return sum;
    };
    // The least before stage s, if it begins at a position, and from there on.
    std::vector<Sums> before(stages_ + 1, Sums(n + 1, kNever)), behind = before;
    before[0][0] = behind[stages_][n] = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      for (std::size_t k = 0; k < StageBounds::kAmounts; ++k)
        for (std::size_t q = 0; q <= n && y[s][k] != 0; ++q) {
          const Big until = y[s][k] * bounds_.until(q, s, k);
          end[s][q] += until, begin[s][q] += y[s][k] * bounds_.once(s, k) - until;
        }
      if (s > 0 && y[s][kUp] + y[s][kBack] + y[s][kWaits] + y[s][kWaits + 1] > 0)
        add_transfers(region, y, s, before[s], begin[s]);
      for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
        if (before[s][p] < kReached)
          before[s + 1][q] = std::clamp(before[s][p] + cost(s, p, q), -kNever, before[s + 1][q]);
      });
    }
    for (std::size_t s = stages_; s-- > 0;) {
      shrink(region[s], [&](std::size_t p, std::size_t q) {
        return before[s][p] < kReached && behind[s + 1][q] < kReached &&
               before[s][p] + cost(s, p, q) + behind[s + 1][q] <= most;
      });
      for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
        if (behind[s + 1][q] < kReached)
          behind[s][p] = std::clamp(cost(s, p, q) + behind[s + 1][q], -kNever, behind[s][p]);
      });
    }
    return behind[0][0] <= most;
  }

  /// Looks at all cuts of the region that go on from `cuts`, with stage s at p.
  void each(const Region& region, std::size_t s, std::size_t p, Partition cuts) const {
    cuts_ += s == stages_;
    if (s == stages_) judge(cuts, std::vector<bool>(s, c_.recompute == Recompute::Full), 0);
    if (s > 0) cuts.cuts.push_back(static_cast<std::int32_t>(bounds_.layer(p)) - 1);
    for (std::size_t q = p + 1; s < stages_ && q <= bounds_.last(); ++q)
      if (region[s][q].begin <= p && p < region[s][q].end) each(region, s + 1, q, cuts);
  }
  /// Looks at cuts with these stages recomputed, and with more of them from s on: no faster.
  void judge(const Partition& cuts, std::vector<bool> recomputed, std::size_t s) const {
    const Prices plan = evaluate(c_.layers, c_.cluster, schedule_, placement_, cuts,
                                 MemoryRule::Lifetimes, {recomputed}, c_.norm);
    if (plan.estimate.count() >= c_.bound) return;
    require(!fits(least_peak_memory(plan, placement_), c_.memory_limit),
            "cuts that fit are faster than the bound");
    for (; c_.recompute == Recompute::Choose && s < stages_; recomputed[s++] = false) {
      recomputed[s] = true;
      judge(cuts, recomputed, s + 1);
    }
  }

  const Certificate& c_;
  const CertifiedProof& proof_;
  const Placement& placement_;
  const StageBounds bounds_;
  std::atomic<std::size_t>& cuts_;
  const std::size_t stages_ = placement_.stages();
  Schedule schedule_;  // empty of any order
  DependencyGraph graph_;
  std::vector<Counts> known_;               // of the moments, then of the paths
  std::vector<CertifiedWeights> fits_{{}};  // cuts that are left exist, and fit at every moment
};

}  // namespace

Verdict certify(const Certificate& c, std::size_t threads) {
  std::atomic<std::size_t> cuts{0};
  try {
    require(c.bound > 0 && !c.proofs.empty(), "there is nothing to prove");
    const StageBounds bounds(c.layers, c.cluster, c.recompute, looks_at_memory(c));
    const Nanoseconds norm = least_norm_time(c.layers, c.norm, c.device_of_rank, c.cluster);
    parallel_for(c.proofs.size(), threads, [&](std::size_t p) {
      const CertifiedProof& proof = c.proofs[p];
      require(proof.spec.ranks == c.device_of_rank.size(), "a schedule of other ranks");
      require(!refusal(proof.spec), "a schedule that there is not");
      require(proof.spec.slices == 1, "a schedule of slices");
      require(family(proof.spec.family).mode == c.layers.mode, "a schedule of another mode");
      const Placement placement{placement_for(proof.spec).rank_of_stage, c.device_of_rank};
      ProofCheck(c, proof, placement, bounds.for_placement(placement, norm), cuts).check();
    });
  } catch (const ConfigError& error) {
    return {error.what(), 0};
  }
  return {"", cuts};
}

}  // namespace pfeife::tool
