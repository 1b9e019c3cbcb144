// What three ranks' paths prove of schedules with two stages a rank, against every cut.
#include "planner/search/bound/round_bound.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "planner/search/bound/stage_bound.h"
#include "planner/search/cuts/local_search.h"
#include "planner/search/cuts/start_cuts.h"
#include "tests/search/random_instance.h"
#include "tests/support/synthetic_models.h"

namespace pfeife {
namespace {

constexpr double kMuch = 1e10;  ///< of work
constexpr Bytes kPlenty{std::int64_t{1} << 40};

/// Two stages dealt to each of two to five ranks, one or two layers much heavier than the others,
/// and in half of the cases memory as some cuts need it.
Instance two_round_instance(std::mt19937& random) {
  Instance instance;
  RandomShape shape;
  shape.skip_share = 0, shape.shared_parameters = false;
  const std::size_t ranks = 2 + random() % 4;
  shape.layers = 2 * ranks + 1 + random() % (ranks < 4 ? 6 : 2);
  instance.layers = random_layers(random, shape);
  for (int heavy = 0; heavy < 2; ++heavy)
    for (LayerTimes& t : instance.layers.layers[random() % shape.layers].times)
      t.forward *= 5, t.backward_input *= 5, t.backward_weight *= 5;
  // In half of the cases transfers and overheads take nothing, so that paths of work decide.
  instance.cluster = random_cluster(random, ranks, true);
  if (random() % 2 == 0) {
    const auto kinds = instance.cluster.kind_of_device;
    instance.cluster = uniform_cluster(ranks, {}, {1e18}, Nanoseconds{0});
    instance.cluster.kinds.push_back({});
    instance.cluster.kind_of_device = kinds;
    for (LayerValue& value : instance.layers.values) value.transfer_time = {};
  }
  const std::vector<std::size_t> loops{2};
  const std::vector<std::string> dealt{"zb1p", "interleaved_1f1b", "looped_bfs", "looped"};
  const auto set = search_set(ranks, ranks * (1 + random() % 2), loops, dealt);
  if (!set.empty()) instance.schedules = {set[random() % set.size()]};
  instance.memory_limit.assign(ranks, Bytes{1 << 30});
  return instance;
}

/// What of a rank's row its two stages make.
double of_rank(const RoundRow& row, const Cuts& cuts, std::size_t rank) {
  const std::size_t second = rank + (cuts.size() - 1) / 2;
  return row(cuts[rank], cuts[rank + 1], cuts[second], cuts[second + 1]);
}

/// The longest of the paths that the rows speak of; infinite if a rank holds too much.
double longest(const std::vector<RoundRows>& rows, const Problem& problem, const Cuts& cuts) {
  double longest = 0, delay = 0, after = 0, passed = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto of = [&](const RoundRow& row) { return of_rank(row, cuts, r); };
    delay = std::max(delay, of(rows[r].delay));
    after = std::max({after, of(rows[r].after), of(rows[r].leaving)});
    longest = std::max({longest, passed + of(rows[r].rest), passed + of(rows[r].again) + after});
    passed = std::max(passed, delay + of(rows[r].passing));
    longest = std::max({longest, delay + of(rows[r].second) + after,
                        delay + of(rows[r].turned) + after, of(rows[r].all)});
    for (const RoundRow& held : rows[r].held)
      if (of(held) > static_cast<double>(problem.memory_limit[r].value))
        return std::numeric_limits<double>::infinity();
  }
  return longest;
}

TEST(RoundRows, AreNoLongerThanAnyStepAndTheBoundLosesNoCuts) {
  std::mt19937 random(59);
  int tried = 0, near = 0;
  for (int round = 0; round < 500; ++round) {
    const Instance instance = two_round_instance(random);
    if (instance.schedules.empty()) continue;
    const ScheduleSpec& spec = instance.schedules[0];
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (!model.all_linked() || model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    Candidates candidates(model, problem, spec);
    const auto rows = round_rows(candidates);
    if (!rows) continue;
    std::vector<std::pair<double, Cuts>> all;
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
      const Cuts cuts = *model.cuts(partition);
      all.emplace_back(longest(*rows, problem, cuts), cuts);
      ASSERT_LE(all.back().first, candidates.time(cuts)) << round << ' ' << spec.family;
    });
    std::ranges::sort(all);
    const auto kept = std::ranges::find_if(all, [&](const auto& one) {
      const auto reach = stage_reaches(model, candidates.costs(), candidates.schedule(), one.first);
      for (std::size_t s = 0; s < spec.stages(); ++s)
        if (reach[s][static_cast<std::size_t>(one.second[s])] < one.second[s + 1]) return false;
      return true;
    });
    if (kept == all.end()) continue;
    const auto rounds = RoundBound::make(candidates);
    const double raised = rounds->raise(0, kept->first + 1, kMuch);
    ASSERT_LE(raised, kept->first) << round << ' ' << spec.family;
    ++tried, near += raised > 0.9 * kept->first;
  }
  EXPECT_GT(tried, 100);
  EXPECT_GT(near, tried / 2);
}

using Order = std::array<std::int64_t, 3>;

/// Three microbatches pass two ranks twice, all forward before the first of them comes back; in the
/// second round the second rank takes them in these orders.
Schedule two_rounds(const Order& onward, const Order& back) {
  const Order order{0, 1, 2};
  Schedule schedule;
  for (const std::int64_t r : {0, 1}) {
    auto& row = schedule.rows.emplace_back();
    const auto add = [&](auto action, std::int64_t stage, const Order& microbatches) {
      for (const std::int64_t m : microbatches)
        row.emplace_back(action(StageId{stage}, MicrobatchId{m}));
    };
    add(forward, r, order), add(forward, r + 2, r == 1 ? onward : order);
    add(backward, r + 2, r == 1 ? back : order), add(backward, r, order);
  }
  return schedule;
}

TEST(RoundRows, AreNoneWhereRanksTakeTheMicrobatchesThatLeadBetweenThemInAnotherOrder) {
  const Layers layers = synthetic_vit();
  const Cluster cluster = synthetic_cluster(2, 180, 80000);
  const ScheduleSpec spec{.family = "looped_bfs", .ranks = 2, .microbatches = 3, .loops = 2};
  const Problem problem{.layers = layers,
                        .cluster = cluster,
                        .schedules = {spec},
                        .device_of_rank = {DeviceId{0}, DeviceId{1}},
                        .memory_limit = {kPlenty, kPlenty}};
  const CutModel model(layers, cluster, MemoryRule::Lifetimes);
  const auto has_rows = [&](const Order& onward, const Order& back) {
    return round_rows(Candidates(model, problem, spec, two_rounds(onward, back))).has_value();
  };
  EXPECT_TRUE(has_rows({0, 1, 2}, {0, 1, 2}));
  EXPECT_FALSE(has_rows({1, 0, 2}, {0, 1, 2})) << "first F";
  EXPECT_FALSE(has_rows({0, 2, 1}, {0, 1, 2})) << "last F";
  EXPECT_FALSE(has_rows({0, 1, 2}, {1, 0, 2})) << "first B";
  EXPECT_FALSE(has_rows({0, 1, 2}, {0, 2, 1})) << "last B";
}

/// Here stages fall behind: those that end before they begin have nothing less to do than none.
TEST(RoundBound, IsWithinTenPerCentOfAPlanOfThirtyTwoStages) {
  const std::size_t ranks = 16;
  const Layers layers = synthetic_vit();
  const Cluster cluster = synthetic_cluster(ranks, 1e9, 0);
  const ScheduleSpec spec{.family = "zb1p", .ranks = ranks, .microbatches = ranks, .loops = 2};
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {spec}};
  for (std::size_t r = 0; r < ranks; ++r) {
    problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.push_back(kPlenty);
  }
  const CutModel model(layers, cluster, MemoryRule::Lifetimes);
  Candidates candidates(model, problem, spec);
  const Cuts even = simple_cuts(model, candidates.placement()).front();
  const double plan = descend(candidates, score(candidates, even), 400).score;
  const double raised = RoundBound::make(candidates)->raise(0, plan, 1e9);
  EXPECT_GE(raised, 0.9 * plan) << raised / plan;
  EXPECT_LE(raised, plan);
}

TEST(RoundBound, IsNotAboveTheBruteForceOptimumAndOftenAboveTheStageBound) {
  std::mt19937 random(53);
  int tried = 0, higher = 0, near = 0, limited = 0;
  std::map<std::string, int> families;
  for (int round = 0; round < 360; ++round) {
    Instance instance = two_round_instance(random);
    if (instance.schedules.empty()) continue;
    const ScheduleSpec& spec = instance.schedules[0];
    Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (!model.all_linked() || model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    const Best any = brute_force(problem, spec);
    if (round % 2 == 0) {
      const Placement placement = placement_for(spec);
      std::vector<Partition> all;
      for_each_partition(problem.layers, spec.stages(),
                         [&](const Partition& cuts) { all.push_back(cuts); });
      problem.memory_limit = evaluate(problem.layers, problem.cluster, generate(spec), placement,
                                      all[random() % all.size()], MemoryRule::Lifetimes)
                                 .peak_memory;
    }
    const double best = round % 2 == 0 ? brute_force(problem, spec).time : any.time;
    const Candidates candidates(model, problem, spec);
    auto rounds = RoundBound::make(candidates);
    if (!rounds) continue;
    ASSERT_LE(rounds->raise(0, best + 1, kMuch), best) << round << ' ' << spec.family;
    const std::vector<CutCosts::Latency> none(spec.stages(), {0, 0});
    const double stages = stage_bound(model, candidates.costs(), candidates.schedule(), none, best);
    const double raised = rounds->raise(stages, best, kMuch);
    ASSERT_GE(raised, stages) << round;
    ASSERT_LE(raised, best) << round;
    ++tried, ++families[spec.family];
    higher += raised > stages, near += raised > stages && raised > 0.97 * best;
    limited += best > any.time;
  }
  EXPECT_GT(tried, 100);
  EXPECT_GT(higher, tried / 2) << "of " << tried;
  EXPECT_GT(near, 5) << "of " << tried;
  EXPECT_GT(limited, 20) << "of " << tried;
  EXPECT_GT(families["zb1p"], 15);
  EXPECT_GT(families.size(), 2u);
}

}  // namespace
}  // namespace pfeife
