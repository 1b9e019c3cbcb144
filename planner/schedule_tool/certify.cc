#include "planner/schedule_tool/certify.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "planner/cost/evaluate.h"
#include "planner/cost/stage_bounds.h"
#include "planner/ir/error.h"
#include "planner/ir/lower.h"
#include "planner/ir/parallel.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

using enum StageBounds::Amount;
__extension__ using Big = __int128;
constexpr Big kMost = Big{1} << 53;    // of weights, as of an amount of the whole model
constexpr Big kNever = Big{1} << 124;  // above every sum of amounts times weights
using Sums = std::vector<Big>;         // [position]
/// Amounts of a stage or weights of them; messages where it begins; of stage 0: paths, limits.
enum : std::size_t { kPass = kAmounts, kUp = kPass + 4, kBack, kPaths, kLimits, kAll };
using Counts = std::vector<std::array<Big, kAll>>;  // [stage]
struct Begins {                                     // positions begin .. end - 1
  std::size_t begin = 0, end = 0;
  bool has(std::size_t p) const { return begin <= p && p < end; }
};
using Region = std::vector<std::vector<Begins>>;  // [stage][its end]: where it may begin

void require(bool holds, const char* otherwise) {
  if (!holds) throw ConfigError({}, otherwise);
}

class ProofCheck {
 public:
  ProofCheck(const Certificate& c, const CertifiedProof& proof, const StageBounds& bounds)
      : c_(c),
        proof_(proof),
        stages_(proof.spec.stages()),
        placement_{placement_for(proof.spec).rank_of_stage, c.device_of_rank},
        bounds_(bounds.of(placement_)) {
    if (!proof.any_order) {
      require(!family(proof.spec.family).built_for_costs, "an order that is not given");
      const Nanoseconds ns{1};
      const StageCosts costs = uniform_costs(stages_, ns, ns, ns, ns);
      schedule_ = generate(proof.spec);
      graph_ = dependencies(lower(schedule_, costs, placement_), chain(stages_), placement_, {});
    }
    for (const auto& path : proof.paths) paths_.push_back(proof.any_order ? row(path) : walk(path));
    for (Counts& path : paths_) path[0][kPaths] = 1;
    for (const CertifiedMoment& moment : proof.moments) moments_.push_back(held(moment));
    for (std::uint32_t m = 0; m < moments_.size(); ++m) fits_.push_back({{}, {{m, 1}}});
  }

  /// Returns how many cuts it looked at one by one.
  std::size_t check() const {
    std::size_t cuts = 0;
    if (stages_ > bounds_.last()) return cuts;  // there are none
    std::vector<Region> open{root()};
    for (const CertifiedNode& node : proof_.tree) {
      require(!open.empty(), "the tree goes on after all cuts are covered");
      Region region = std::move(open.back());
      open.pop_back();
      std::vector<CertifiedWeights> all = fits_;
      all.insert(all.end(), node.weights.begin(), node.weights.end());
      all.insert(all.end(), fits_.begin(), fits_.end());
      const bool left = std::ranges::all_of(all, [&](const auto& w) { return filter(region, w); });
      if (node.then == CertifiedNode::Then::Nothing)
        require(!left, "a region may have faster cuts than the bound");
      else if (node.then == CertifiedNode::Then::Each && !proof_.any_order)
        cuts += each(region, 0, 0, {});
      else
        split(region, node, open);
    }
    require(open.empty(), "the tree ends before all cuts are covered");
    return cuts;
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
      of[kInput] += a.op == Op::Backward || a.op == Op::BackwardInput;
      of[kWeight] += a.op == Op::Backward || a.op == Op::BackwardWeight;
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

  /// In any order: the first microbatch passes stages (f; s: which counts for nothing) or comes
  /// back to them (b); the rank does what is left; the last one goes back over stages (d).
  Counts row(const CertifiedPath& path) const {
    const auto turns = [&](char turn) { return std::ranges::count(path.turns, turn); };
    const std::size_t b = turns('b'), skip = turns('s'), leave = turns('d'),
                      come = b > 0 ? stages_ : skip + turns('f');
    Counts counts(stages_);
    for (std::size_t s = 0; s < stages_; ++s) {
      const bool mine = placement_.rank_of_stage[s].index() == path.rank;
      const bool back = s + b > stages_, once = back || s < leave;
      const Big n = mine ? proof_.spec.microbatches : 0, end = leave > 0 ? s == 0 : mine && !once;
      counts[s] = {s < come ? skip <= s : n, once ? 1 : n, leave > 0 ? end : end * n, end};
      counts[s][kUp] = skip < s && s <= come;
      counts[s][kBack] = back || (0 < s && s <= leave);
    }
    return counts;
  }

  /// What a rank holds at a moment; if stages may be recomputed, what F saves only in F, B or I.
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
      of[kSaved] -= !now && (row[k].op == Op::Backward || row[k].op == Op::BackwardInput);
      of[kWeightSaved] += !now && row[k].op == Op::BackwardInput;
      of[kWeightSaved] -= !now && row[k].op == Op::BackwardWeight;
    }
    counts[0][kLimits] = c_.memory_limit[moment.rank].value;
    for (std::size_t s = 0; s < stages_; ++s) {
      auto& of = counts[s];
      of[kFixed] = placement_.rank_of_stage[s].index() == moment.rank;
      if (c_.recompute != Recompute::None) of[kSaved] = of[kPass] + of[kPass + 1] + of[kPass + 2];
    }
    return counts;
  }

  static void for_each_stage(const std::vector<Begins>& begins, const auto& visit) {
    for (std::size_t q = 0; q < begins.size(); ++q)
      for (std::size_t p = begins[q].begin; p < begins[q].end; ++p) visit(p, q);
  }
  /// Leaves of every interval what lies between the first and the last begin that `may` be.
  static void shrink(std::vector<Begins>& begins, const auto& may) {
    for (std::size_t q = 0; q < begins.size(); ++q) {
      auto& [begin, end] = begins[q];
      while (begin < end && !may(begin, q)) ++begin;
      while (begin < end && !may(end - 1, q)) --end;
    }
  }
  /// All cuts of the claim. A stage is busy N times a step, so none that matters takes bound / N.
  Region root() const {
    Region all(stages_, std::vector<Begins>(bounds_.last() + 1));
    require(proof_.least_load.size() == stages_, "not one least load a stage");
    for (std::size_t s = 0; s < stages_; ++s) {
      for (std::size_t p = 0, q = 0; q <= bounds_.last(); all[s][q] = {p, q}, ++q)
        while (p < q && proof_.spec.microbatches * Big{bounds_.load(s, p, q)} >= c_.bound) ++p;
      shrink(all[s], [&](std::size_t p, std::size_t q) {
        return bounds_.load(s, p, q) >= proof_.least_load[s];
      });
    }
    return all;
  }
  void split(const Region& region, const CertifiedNode& node, std::vector<Region>& open) const {
    const bool by_load = node.then == CertifiedNode::Then::SplitLoad;
    require(node.stage < stages_, "a split of no stage");
    for (const bool above : {true, false})
      shrink(open.emplace_back(region)[node.stage], [&](std::size_t p, std::size_t q) {
        const Big what = by_load ? bounds_.load(node.stage, p, q) : Big{q};
        return (what > node.threshold) == above;
      });
  }

  /// The weighted sum of counts.
  Counts weighted(const CertifiedWeights& weights) const {
    Counts y(stages_);
    const auto add = [&](const std::vector<Counts>& known, const CertifiedWeight& w) {
      require(w.of < known.size() && w.weight >= 0 && w.weight < kMost, "a weight out of range");
      for (std::size_t s = 0; s < stages_; ++s)
        for (std::size_t k = 0; k < kAll; ++k)
          require((y[s][k] += w.weight * known[w.of][s][k]) < kMost, "weights too large together");
    };
    for (const CertifiedWeight& weight : weights.paths) add(paths_, weight);
    for (const CertifiedWeight& weight : weights.moments) add(moments_, weight);
    return y;
  }
  /// What crosses where stage s begins: adds it to `once`, for every position that may be reached.
  void add_transfers(const Region& region, const Counts& y, std::size_t s, const Sums& before,
                     Sums& once) const {
    std::vector<Begins> ends(once.size(), Begins{once.size(), 0});  // [begin] first end, last end
    for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
      ends[p] = {std::min(ends[p].begin, q), q};
    });
    for (const bool back : {false, true})
      for (std::size_t q = 0; q < once.size() && y[s][kUp + back] > 0; ++q) {
        if (before[q] >= kNever || ends[q].end == 0) continue;
        const auto& [first, behind] = region[s - 1][q];
        auto time = bounds_.message(s, behind - 1, q, ends[q].begin, back);
        if (!time && proof_.linked) time = bounds_.some_message(s, first, q, ends[q].end, back);
        require(time.has_value(), "a path takes a transfer that may not exist");
        once[q] += y[s][kUp + back] * time->count();
      }
  }

  /// Takes out stages that only lie on cuts whose weighted sum is bound or more. False: all.
  bool filter(Region& region, const CertifiedWeights& weights) const {
    const Counts y = weighted(weights);
    const Big most = y[0][kPaths] * (c_.bound - 1);
    const std::size_t n = bounds_.last();
    // Of what comes before stage s and behind it the least, and so much more if the stage begins
    // or ends at a position.
    std::vector<Sums> before(stages_ + 1, Sums(n + 1, kNever)), behind = before;
    std::vector<Sums> begin(stages_, Sums(n + 1, 0)), end = begin;
    before[0][0] = -y[0][kLimits], behind[stages_][n] = 0;
    std::vector<std::vector<std::size_t>> passes(stages_);  // of weight
    for (std::size_t pass = 0; pass < StageBounds::kPasses; ++pass)
      for (std::size_t s = 0; s < stages_; ++s)
        if (y[s][kPass + pass] > 0) passes[s].push_back(pass);
    const auto during = [&](std::size_t s, std::size_t p, std::size_t q) {
      Big all = 0;
      for (const std::size_t k : passes[s]) all += y[s][kPass + k] * bounds_.temporary(k, p, q);
      return all;
    };
    for (std::size_t s = 0; s < stages_; ++s) {
      for (std::size_t k = 0; k < kAmounts; ++k)
        for (std::size_t q = 0; q <= n && y[s][k] != 0; ++q) {
          const Big until = y[s][k] * bounds_.until(q, s, k);
          end[s][q] += until, begin[s][q] += y[s][k] * bounds_.once(s, k) - until;
        }
      if (s > 0 && y[s][kUp] + y[s][kBack] > 0) add_transfers(region, y, s, before[s], begin[s]);
      for (std::size_t p = 0; p <= n; ++p) begin[s][p] += before[s][p];
      for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
        before[s + 1][q] = std::min(before[s + 1][q], begin[s][p] + during(s, p, q));
      });
      for (std::size_t q = 0; q <= n; ++q) before[s + 1][q] += end[s][q];
    }
    for (std::size_t s = stages_; s-- > 0;) {
      for (std::size_t q = 0; q <= n; ++q) end[s][q] += behind[s + 1][q];
      shrink(region[s], [&](std::size_t p, std::size_t q) {
        return begin[s][p] + during(s, p, q) + end[s][q] <= most;
      });
      for_each_stage(region[s], [&](std::size_t p, std::size_t q) {
        behind[s][p] = std::min(behind[s][p], during(s, p, q) + end[s][q]);
      });
      for (std::size_t p = 0; p <= n; ++p) behind[s][p] += begin[s][p] - before[s][p];
    }
    return before[0][0] + behind[0][0] <= most;
  }

  /// Looks at all cuts of the region that go on from `cuts`, with stage s at p; returns how many.
  std::size_t each(const Region& region, std::size_t s, std::size_t p, Partition cuts) const {
    std::size_t count = s == stages_;
    if (s == stages_) judge(cuts, std::vector<bool>(s, c_.recompute == Recompute::Full), 0);
    if (s > 0) cuts.cuts.push_back(static_cast<std::int32_t>(bounds_.layer(p)) - 1);
    for (std::size_t q = p + 1; s < stages_ && q <= bounds_.last(); ++q)
      if (region[s][q].has(p)) count += each(region, s + 1, q, cuts);
    return count;
  }
  /// Looks at cuts with these stages recomputed, and with more of them from s on: no faster.
  void judge(const Partition& cuts, std::vector<bool> recomputed, std::size_t s) const {
    const EvaluatedPlan plan = evaluate(c_.layers, c_.cluster, schedule_, placement_, cuts,
                                        MemoryRule::Lifetimes, recomputed);
    if (plan.estimate.count() >= c_.bound) return;
    require(!std::ranges::equal(plan.peak_memory, c_.memory_limit, std::less_equal{}),
            "cuts that fit are faster than the bound");
    for (; c_.recompute == Recompute::Choose && s < stages_; recomputed[s++] = false) {
      recomputed[s] = true;
      judge(cuts, recomputed, s + 1);
    }
  }

  const Certificate& c_;
  const CertifiedProof& proof_;
  std::size_t stages_;
  Placement placement_;
  StageBounds bounds_;
  Schedule schedule_;  // empty of any order
  DependencyGraph graph_;
  std::vector<Counts> paths_, moments_;
  std::vector<CertifiedWeights> fits_{{}};  // cuts that are left exist, and fit at every moment
};

}  // namespace

Verdict certify(const Certificate& c, std::size_t threads) {
  std::vector<std::size_t> cuts(c.proofs.size());
  try {
    require(c.bound > 0 && !c.proofs.empty(), "there is nothing to prove");
    const Placement none;
    const StageBounds bounds(c.layers, none, c.cluster, c.recompute);
    parallel_for(cuts.size(), threads, [&](std::size_t p) {
      const CertifiedProof& proof = c.proofs[p];
      require(proof.spec.ranks == c.device_of_rank.size(), "a schedule of other ranks");
      require(!refusal(proof.spec), "a schedule that there is not");
      if (proof.whole == CertifiedProof::Whole::No)
        cuts[p] = ProofCheck(c, proof, bounds).check();
      else
        require(takes_the_bound(c, proof), "the model as a whole takes less than the bound");
    });
  } catch (const ConfigError& error) {
    return {error.what(), 0};
  }
  return {"", std::accumulate(cuts.begin(), cuts.end(), std::size_t{0})};
}

}  // namespace pfeife::tool
