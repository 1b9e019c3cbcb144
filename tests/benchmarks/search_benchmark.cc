// The search on synthetic stand-ins for ViT-g/14 (40 blocks) and an SDXL-like U-Net, eight devices
// on NVLink-like links, sixteen microbatches, one core. evaluate_program and price_candidates are
// the batch form, beside one candidate at a time and the full estimator; proofs report their gap.
#include <benchmark/benchmark.h>

#include <limits>

#include "planner/schedules/families.h"
#include "planner/search/cuts/local_search.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/proof/branch_and_bound.h"
#include "planner/search/search.h"
#include "tests/support/synthetic_models.h"

namespace pfeife {
namespace {

constexpr std::size_t kRanks = 8, kMicrobatches = 16;

Problem problem_of(const Layers& layers, const Cluster& cluster,
                   std::vector<ScheduleSpec> schedules) {
  Problem problem{.layers = layers, .cluster = cluster, .schedules = std::move(schedules)};
  for (std::size_t r = 0; r < kRanks; ++r) {
    problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.emplace_back(std::int64_t{1} << 45);
  }
  return problem;
}
Layers model_of(const benchmark::State& state) {
  return state.range(0) == 0 ? synthetic_vit() : synthetic_unet();
}
ScheduleSpec spec_of(std::size_t stages_per_rank) {
  if (stages_per_rank == 1) return {"1f1b", kRanks, kMicrobatches, 1, {}, {7}};
  return {"looped", kRanks, kMicrobatches, stages_per_rank, kRanks, {7}};
}
const Cluster& cluster() {
  static const Cluster links = synthetic_cluster(kRanks, 180, 6000);
  return links;
}

/// `candidates` at once in each iteration.
void count_nodes(benchmark::State& state, const Program& program, std::size_t candidates) {
  state.counters["ns_per_node"] =
      benchmark::Counter(static_cast<double>(state.iterations()) *
                             static_cast<double>(candidates * program.compute_nodes()) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
void count_candidates(benchmark::State& state, std::size_t candidates) {
  state.counters["us_per_candidate"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(candidates) * 1e-6,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

template <class Number>
void evaluate_program(benchmark::State& state) {
  const ScheduleSpec spec = spec_of(static_cast<std::size_t>(state.range(0)));
  const Program program(generate(spec), placement_for(spec));
  Program::Lanes<Number> lanes(program.lane_rows());
  for (auto& row : lanes) row.lane.fill(1000);
  double out[Program::kLanes];
  for (auto _ : state) {
    program.makespans(lanes, out);
    benchmark::DoNotOptimize(out[0]);
  }
  count_nodes(state, program, Program::kLanes);
}
BENCHMARK(evaluate_program<Program::Narrow>)->ArgName("loops")->DenseRange(1, 3);
BENCHMARK(evaluate_program<double>)->ArgName("loops")->DenseRange(1, 3);

/// For comparison: one candidate, with the ends that its critical path is found by.
void evaluate_one(benchmark::State& state) {
  const ScheduleSpec spec = spec_of(static_cast<std::size_t>(state.range(0)));
  const Program program(generate(spec), placement_for(spec));
  const std::vector<double> durations(program.durations(), 1000);
  std::vector<double> ends;
  for (auto _ : state) benchmark::DoNotOptimize(program.makespan(durations, ends));
  count_nodes(state, program, 1);
}
BENCHMARK(evaluate_one)->ArgName("loops")->DenseRange(1, 3);

void price_candidates(benchmark::State& state) {
  const Layers layers = model_of(state);
  const ScheduleSpec spec = spec_of(static_cast<std::size_t>(state.range(1)));
  const Problem problem = problem_of(layers, cluster(), {spec});
  const CutModel model(layers, cluster(), MemoryRule::Lifetimes);
  Candidates candidates(model, problem, spec);
  const Cuts start = *model.cuts(*equal_time_cuts(layers, placement_for(spec), cluster()));
  std::vector<Cuts> moves(1024, start);
  for (std::size_t k = 0; k < moves.size(); ++k)
    moves[k][1 + k % (spec.stages() - 1)] += static_cast<std::int32_t>(k % 5) - 2;
  std::vector<double> times;
  for (auto _ : state) candidates.times(moves, times, std::numeric_limits<double>::infinity());
  count_candidates(state, moves.size());
}
BENCHMARK(price_candidates)->ArgNames({"unet", "loops"})->ArgsProduct({{0, 1}, {1, 2, 3}});

/// For comparison: the same in full, with memory, by the estimator that knows nothing of searches.
void estimate_in_full(benchmark::State& state) {
  const Layers layers = model_of(state);
  const ScheduleSpec spec = spec_of(static_cast<std::size_t>(state.range(1)));
  const Placement placement = placement_for(spec);
  const Schedule schedule = generate(spec);
  const Partition partition = *equal_time_cuts(layers, placement, cluster());
  for (auto _ : state)
    benchmark::DoNotOptimize(evaluate(layers, cluster(), schedule, placement, partition));
  count_candidates(state, 1);
}
BENCHMARK(estimate_in_full)->ArgNames({"unet", "loops"})->ArgsProduct({{0, 1}, {1, 2, 3}});

/// All listed schedules of round-robin placement with up to so many stages a rank.
void joint(benchmark::State& state) {
  const Layers layers = model_of(state);
  std::vector<std::size_t> stages_per_rank;
  for (std::int64_t v = 1; v <= state.range(1); ++v)
    stages_per_rank.push_back(static_cast<std::size_t>(v));
  const std::vector<std::string> names{"gpipe",      "1f1b",  "looped", "interleaved_1f1b",
                                       "looped_bfs", "zb_h1", "zb_h2",  "zb1p"};
  const Problem problem =
      problem_of(layers, cluster(), search_set(kRanks, kMicrobatches, stages_per_rank, names));
  Answer outcome;
  for (auto _ : state) outcome = search(problem, {});
  const auto time = static_cast<double>(outcome.plans.at(0).estimate.count());
  state.counters["plan_ms"] = time * 1e-6;
  state.counters["gap_percent"] =
      100 * (time / static_cast<double>(outcome.bound->time.count()) - 1);
  state.counters["schedules"] = static_cast<double>(problem.schedules.size());
}
BENCHMARK(joint)
    ->ArgNames({"unet", "loops"})
    ->ArgsProduct({{0, 1}, {1, 2, 3}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pfeife
