// Random points of the space of plans, whatever combines: families with whole microbatches and with
// slices, split backward, several stages a rank, recomputation of stages and of blocks, offload,
// norms, forward only, tight memory. On problems so small that every choice can be priced, the
// search, the bound, the certificate, the estimator, the simulator and the judge agree.
#include <gtest/gtest.h>

#include <map>

#include "planner/cost/estimate/priced_plan.h"
#include "planner/cost/layers/forward_layers.h"
#include "planner/cost/stages/blocks.h"
#include "planner/ir/judge/validate.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/pool/pool.h"
#include "planner/search/price/price.h"
#include "sim/simulator.h"
#include "tests/search/random_sequences.h"

namespace pfeife {
namespace {

/// What a stage may do with what it saves.
struct Use {
  bool again = false;
  double offload = 0;
};

/// A point of the space: what is asked, and all that the answer may choose among.
class Point {
 public:
  explicit Point(std::mt19937& random) {
    const auto one_of = [&](std::size_t choices) { return random() % choices; };
    const bool sliced = one_of(3) == 0;
    forward_only_ = !sliced && one_of(6) == 0;
    const std::size_t ranks = 1 + one_of(3), microbatches = 1 + one_of(3);
    layers_ = sliced ? random_sequences(random, 4 + one_of(2), one_of(2) == 0 ? 0 : 16)
                     : random_layers(random, {.layers = 4 + one_of(3), .illegal_cuts = false});
    if (forward_only_) layers_ = forward_layers(std::move(layers_));
    cluster_ = random_cluster(random, ranks, one_of(2) == 0);
    for (DeviceKind& kind : cluster_.kinds) kind.host_link = HostLink{.bandwidth = {1e9}};
    const std::vector<std::string> families =
        forward_only_ ? std::vector<std::string>{"forward"}
        : sliced      ? std::vector<std::string>{"seq1f1b", "terapipe", "slimpipe", "1f1b"}
                      : std::vector<std::string>{"1f1b",   "gpipe", "zb_h1", "interleaved_1f1b",
                                                 "looped", "zbv"};
    const std::vector<std::size_t> slices =
        sliced ? std::vector<std::size_t>{2, 3} : std::vector<std::size_t>{};
    std::vector<ScheduleSpec> all =
        search_set(ranks, microbatches, sliced ? std::vector<std::size_t>{1} : kStages, families,
                   slices, one_of(2) == 0 ? SliceLengths::Equal : SliceLengths::EqualTime);
    for (std::size_t k = 0; k < 2 && !all.empty(); ++k) {
      const ScheduleSpec spec = all[one_of(all.size())];
      if (spec.stages() <= layers_.size() && std::ranges::find(specs_, spec) == specs_.end())
        specs_.push_back(spec);
    }
    if (!forward_only_) {
      constexpr Recompute kRecompute[] = {Recompute::None, Recompute::Choose, Recompute::Full,
                                          Recompute::IfNeeded, Recompute::Blocks};
      recompute_ = kRecompute[one_of(5)];
      if (sliced && recompute_ == Recompute::Blocks) recompute_ = Recompute::Choose;
      offload_ = recompute_ != Recompute::Blocks && one_of(3) == 0;
      norm_ = one_of(4) == 0 ? StepNorm::Clipped : StepNorm::None;
    }
    if (recompute_ == Recompute::Blocks)
      for (std::size_t l = 0; l + 1 < layers_.size(); l += 2)
        blocks_.push_back({LayerId{l}, LayerId{l + 1}});
    limits_.assign(ranks, Bytes{1 << 30});
    const bool tight = one_of(3) > 0;
    if (!tight || specs_.empty()) return;
    std::vector<Bytes> least(ranks, Bytes{1 << 30});
    for_each_partition(layers_, specs_[0].stages(), [&](const Partition& cuts) {
      const Priced roomy = price(problem(), choice(specs_[0], cuts));
      for (std::size_t r = 0; r < ranks; ++r) least[r] = std::min(least[r], roomy.peak_memory[r]);
    });
    const double share = 0.6 + static_cast<double>(one_of(120)) / 100;
    for (std::size_t r = 0; r < ranks; ++r)
      limits_[r] = Bytes{static_cast<std::int64_t>(share * static_cast<double>(least[r].value))};
  }

  bool possible() const { return !specs_.empty(); }
  const Layers& layers() const { return layers_; }
  const Cluster& cluster() const { return cluster_; }
  Problem problem() const {
    Problem problem{.layers = layers_, .cluster = cluster_, .schedules = specs_};
    problem.offload = offload_;
    for (std::size_t r = 0; r < limits_.size(); ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit = limits_, problem.recompute = recompute_, problem.blocks = blocks_;
    problem.norm = norm_;
    return problem;
  }

  /// The fastest choice that fits, by price() of every one.
  std::optional<Nanoseconds> best() const {
    std::optional<Nanoseconds> best;
    for (const ScheduleSpec& spec : specs_)
      for_each_partition(layers_, spec.stages(), [&](const Partition& cuts) {
        for (const Activations& activations : all_uses(spec)) {
          Choice tried = choice(spec, cuts);
          tried.activations = activations;
          if (const auto plan = fitting(problem(), std::move(tried)))
            best = std::min(best.value_or(plan->estimate), plan->estimate);
        }
        for (const Activations& activations : all_blocks(cuts)) {
          Choice tried = choice(spec, cuts);
          tried.activations = activations;
          if (const auto plan = fitting(problem(), std::move(tried)))
            best = std::min(best.value_or(plan->estimate), plan->estimate);
        }
      });
    return best;
  }

  /// Words for what is drawn: what combines with what is counted by them.
  std::vector<std::string> words() const {
    std::vector<std::string> words = {to_string(recompute_)};
    if (offload_) words.emplace_back("offload");
    if (forward_only_) words.emplace_back("forward only");
    if (norm_ != StepNorm::None) words.emplace_back("norm");
    for (const ScheduleSpec& spec : specs_) {
      words.push_back(spec.slices > 1 ? "slices" : spec.family);
      if (spec.stages_per_rank > 1) words.emplace_back("several stages a rank");
    }
    return words;
  }

 private:
  inline static const std::vector<std::size_t> kStages{1, 2};

  Choice choice(const ScheduleSpec& spec, const Partition& cuts) const {
    std::vector<DeviceId> devices;
    for (std::size_t r = 0; r < spec.ranks; ++r) devices.emplace_back(r);
    return {.spec = spec, .partition = cuts, .placement = placement_for(spec, devices)};
  }

  std::vector<Activations> all_uses(const ScheduleSpec& spec) const {
    std::vector<Use> uses;
    for (const bool again : {false, true}) {
      if (again && (recompute_ == Recompute::None || recompute_ == Recompute::Blocks)) continue;
      if (!again && recompute_ == Recompute::Full) continue;
      for (const double share : {0.0, 0.5, 1.0})
        if (share == 0 || offload_) uses.push_back({again, share});
    }
    std::vector<Activations> all(1);
    for (std::size_t s = 0; s < spec.stages(); ++s) {
      std::vector<Activations> longer;
      for (const Activations& begun : all)
        for (const Use& use : uses) {
          longer.push_back(begun);
          longer.back().stages.push_back(use.again);
          longer.back().offload.push_back(use.offload);
        }
      all = std::move(longer);
    }
    for (Activations& activations : all) {
      if (std::ranges::count(activations.stages, true) == 0) activations.stages.clear();
      if (!offload_) activations.offload.clear();
    }
    return all;
  }

  /// Every subset of the blocks, a block that a cut divides being two.
  std::vector<Activations> all_blocks(const Partition& cuts) const {
    if (blocks_.empty()) return {};
    std::vector<LayerRange> parts;
    for (const LayerRange& block : blocks_) {
      LayerRange left = block;
      for (const std::int32_t cut : cuts.cuts)
        if (left.first.value <= cut && cut < left.last.value) {
          parts.push_back({left.first, LayerId{cut}});
          left.first = LayerId{cut + 1};
        }
      parts.push_back(left);
    }
    std::vector<Activations> all;
    for (std::size_t subset = 0; subset < std::size_t{1} << parts.size(); ++subset) {
      Activations activations;
      for (std::size_t p = 0; p < parts.size(); ++p)
        if (subset >> p & 1U) activations.blocks.push_back(parts[p]);
      all.push_back(std::move(activations));
    }
    return all;
  }

  Layers layers_;
  Cluster cluster_;
  std::vector<ScheduleSpec> specs_;
  std::vector<LayerRange> blocks_;
  std::vector<Bytes> limits_;
  Recompute recompute_ = Recompute::None;
  StepNorm norm_ = StepNorm::None;
  bool offload_ = false, forward_only_ = false;
};

/// The plan's rows are in order, and the simulator takes as long as the estimator.
void expect_executable(const Point& point, const Priced& best) {
  Plan plan = plan_of(best);
  if (point.problem().norm == StepNorm::Clipped) plan.clip_norm = 1;
  const auto made = priced_plan(std::move(plan), false, point.layers(), point.cluster());
  ASSERT_TRUE(std::holds_alternative<PricedPlan>(made));
  const PricedPlan& priced = std::get<PricedPlan>(made);
  EXPECT_EQ(step_time(priced.estimated), best.estimate);
  EXPECT_EQ(priced.plan.peak_memory, best.peak_memory);
  const Requirements required =
      requirements_of(priced.plan.schedule, stage_graph(priced.costs), point.layers().mode);
  const auto wrong = validate(priced.plan.schedule, required, {.blocking = false});
  EXPECT_TRUE(wrong.empty()) << wrong.front().message;
  if (!simulator_available()) return;
  const auto simulated = simulate(executed_graph(priced.plan, priced.costs), priced.costs,
                                  priced.plan.placement, point.cluster());
  ASSERT_TRUE(std::holds_alternative<Trace>(simulated));
  EXPECT_EQ(step_time(std::get<Trace>(simulated)), best.estimate);
}

TEST(Space, SearchBoundCertificateEstimatorSimulatorAndJudgeAgreeAtRandomPoints) {
  std::mt19937 random(62);
  std::map<std::string, int> seen, pairs;
  int points = 0, nothing_fits = 0, best_found = 0, proven = 0;
  for (int drawn = 0; drawn < 160; ++drawn) {
    const Point point(random);
    if (!point.possible()) continue;
    const std::vector<std::string> words = point.words();
    std::string text = std::to_string(drawn);
    for (const std::string& word : words) text += ", " + word;
    SCOPED_TRACE(text);
    ++points;
    for (const std::string& word : words) ++seen[word];
    const std::optional<Nanoseconds> best = point.best();
    const Problem problem = point.problem();
    const Answer answer = search(problem, {.iterations = 60, .certificate = true});
    EXPECT_EQ(answer.plans.empty(), !best);
    if (answer.plans.empty() && best) continue;
    if (answer.certificate) {
      EXPECT_EQ(tool::certify(*answer.certificate).refusal, "");
      ++proven;
    }
    if (!best) {
      EXPECT_TRUE(answer.infeasible);
      ++nothing_fits;
      continue;
    }
    const Priced& found = answer.plans.front();
    EXPECT_GE(found.estimate, *best);
    EXPECT_TRUE(fits(found.peak_memory, problem.memory_limit));
    best_found += found.estimate == *best;
    if (found.estimate != *best)
      std::printf("%s: %ld for %ld\n", text.c_str(), static_cast<long>(found.estimate.count()),
                  static_cast<long>(best->count()));
    if (answer.bound) {
      EXPECT_LE(answer.bound->time, *best);
    }
    expect_executable(point, found);
    for (const Priced& plan : answer.front) EXPECT_GE(plan.estimate, *best);
  }
  std::string counts;
  for (const auto& [word, count] : seen) counts += word + " " + std::to_string(count) + "; ";
  std::printf("%d points, %d with no plan, best found in %d of %d, %d certificates: %s\n", points,
              nothing_fits, best_found, points - nothing_fits, proven, counts.c_str());
  EXPECT_GE(best_found, (points - nothing_fits) * 98 / 100);
  EXPECT_GT(nothing_fits, points / 20);
  EXPECT_GT(proven, points / 5);
}

}  // namespace
}  // namespace pfeife
