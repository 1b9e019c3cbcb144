// Whole pipelines, training, profile and memory on a device: on a GPU where there is one, and on a
// stand-in everywhere, which shows that these tests test what they say.
//
// What a GPU adds to the stand-in: kernels that add in another order from run to run (atomics),
// work that is not done when a call returns, streams that overtake each other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <iostream>

#include "planner/cost/estimate/memory.h"
#include "planner/cost/layers/grouping.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/device.h"
#include "runtime/device/rank_memory.h"
#include "runtime/execute/check.h"
#include "runtime/profile/profiler.h"
#include "runtime/train/measure.h"
#include "runtime/train/training.h"
#include "tests/gpu/fake_card.h"
#include "tests/runtime/offloading_rows.h"
#include "tests/runtime/same.h"

namespace pfeife {
namespace {

using namespace testing;

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_stand_in()) {
      device_ = fake_card();
    } else if (fake_card_is_there()) {
      GTEST_SKIP() << "after the stand-in: run this test in a process of its own, as ctest does";
    } else {
      try {
        device_ = open_device("cuda");
      } catch (const ConfigError& error) {
        GTEST_SKIP() << error.what();
      }
    }
    allow_tf32(false);
  }
  bool is_stand_in() const { return GetParam() == std::string("stand_in"); }
  RankOptions exact() const {
    return {.placing = {.device = device_, .double_precision = true}, .seed = 7, .update = false};
  }

  at::Device device_ = at::kCPU;
};

// The tolerance is that of the CPU's test of equivalence: float64, a few additions in another
// order.
TEST_P(OnDevice, PipelinesGiveTheGradientsOfTheUnsplitModel) {
  for (const std::string& name : tiny_models()) {
    const Model model(name);
    const RunOptions options{.rank = exact()};
    const Outcome whole = run(model.unsplit(3), model.source, options);
    for (const auto& [p, gradient] : whole.gradients) EXPECT_EQ(gradient.device(), device_);
    for (const ScheduleSpec& spec : accepted_points({1, 3}, {3}, {1, 2})) {
      const Pipeline pipeline = model.pipeline(spec);
      expect_same(pipeline, run(pipeline, model.source, options), whole, 1e-12,
                  name + " " + name_of(spec));
    }
  }
}

// What is copied to the host and back on streams of its own: gradients, and on the stand-in the
// order of all that touches memory.
TEST_P(OnDevice, PipelinesThatOffloadGiveTheGradientsOfTheUnsplitModel) {
  for (const std::string& name : tiny_models()) {
    const Model model(name);
    RunOptions options{.rank = exact(), .steps = 2};
    const Outcome whole = run(model.unsplit(4), model.source, options);
    options.rank.least_offloaded = Bytes{64};  // the models are small
    if (is_stand_in()) take_races();
    for (const ScheduleSpec& spec :
         {ScheduleSpec{"1f1b", 4, 4, 1, {}, {}}, ScheduleSpec{"interleaved_1f1b", 2, 4, 2, {}, {}},
          ScheduleSpec{"zb_h1", 2, 4, 1, {}, {}}})
      for (const double share : {1.0, 0.5}) {
        const Pipeline pipeline = offloading_pipeline(model, spec);
        options.rank.offload.assign(pipeline.stages.stages, share);
        expect_same(pipeline, run(pipeline, model.source, options), whole, 1e-12,
                    name + " " + name_of(spec));
      }
    if (!is_stand_in()) continue;
    EXPECT_EQ(take_races(), std::vector<std::string>{}) << name;
  }
}

// The same weights, inputs and microbatches; random numbers are a device's own.
TEST_P(OnDevice, GradientsAreThoseOfTheCpuWhereNothingIsDrawn) {
  for (const std::string name : {"tiny_mlp", "tiny_shared"}) {
    const Model model(name);
    bool draws = false;
    for (const NodeEffects& effects : effects_of(model.graph)) draws = draws || effects.random;
    if (draws) continue;
    const Pipeline whole = model.unsplit(2);
    Outcome here = run(whole, model.source, {.rank = exact()});
    for (auto& [p, gradient] : here.gradients) gradient = gradient.cpu();
    EXPECT_LE(largest_difference(here.gradients, run(whole, model.source).gradients), 1e-10)
        << name;
  }
}

TEST_P(OnDevice, CheckFindsNothing) {
  const Model model("tiny_mlp");
  const Pipeline pipeline = model.pipeline({"zb_h1", 2, 4, 1, {}, {}});
  run_ranks(2, device_, [&](RankId rank, Transport& transport) {
    const CheckReport report =
        check_pipeline(pipeline, rank, model.source, exact(), 1e-12, transport);
    if (rank != RankId{0}) return;
    EXPECT_TRUE(report.right()) << to_string(report);
    EXPECT_GT(report.tensors, 4u);
  });
}

std::vector<double> train_here(const Model& model, const RankOptions& options,
                               const TrainingSettings& settings, Bytes* memory = nullptr) {
  const Pipeline pipeline = model.pipeline({"1f1b", 2, 4, 1, {}, {}});
  std::vector<double> losses;
  RandomTurns turns;
  run_ranks(pipeline.ranks(), options.placing.device, [&](RankId rank, Transport& transport) {
    train(pipeline, model.source, options, settings, {rank, transport, turns, {}},
          [&](const StepProgress& progress) {
            losses.push_back(progress.loss);
            if (memory) *memory = progress.memory;
          });
  });
  return losses;
}

// Checkpoints come from the device and go back to it, the optimizer's state as well.
TEST_P(OnDevice, TrainingContinuesFromACheckpoint) {
  const Model model("tiny_mlp");
  RankOptions options = exact();
  options.update = true;
  options.optimizer.kind = Optimizer::AdamW;
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("on_device_" + std::to_string(getpid()));
  Bytes memory{0};
  const auto whole = train_here(model, options, {.steps = 4}, &memory);
  const auto begun = train_here(model, options, {.steps = 2, .save = folder});
  const auto continued =
      train_here(model, options, {.steps = 2, .resume = newest_checkpoint(folder)});
  std::filesystem::remove_all(folder);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(begun[i], whole[i], 1e-12 * std::abs(whole[i]));
    EXPECT_NEAR(continued[i], whole[2 + i], 1e-12 * std::abs(whole[2 + i]));
  }
  EXPECT_NE(whole[0], whole[3]) << "nothing was learnt";
  Bytes parameters{0};
  for (const Parameter& p : model.graph.parameters) parameters += p.type.bytes();
  EXPECT_GT(memory, parameters);  // of half the model: float64, gradients, two states
}

// What ranks are charged with is what the allocator has given.
TEST_P(OnDevice, MemoryOfTheRanksAddsUpToTheAllocators) {
  const Model model("tiny_mlp");
  const Pipeline pipeline = model.pipeline({"1f1b", 3, 4, 1, {}, {}});
  const Bytes before = allocator_statistics(device_)->allocated.now;
  std::barrier together(3);
  std::vector<Bytes> held(3);
  RandomTurns turns;
  run_ranks(3, device_, [&](RankId rank, Transport& transport) {
    RankMemory memory(device_);
    RankPipeline own(pipeline, rank, model.source, exact(), turns, transport);
    {
      const StepInputs inputs = inputs_of(pipeline, 0, exact().placing);
      own.step(inputs);
    }
    finish(device_);
    together.arrive_and_wait();
    held[rank.index()] = memory.allocated().now;
    EXPECT_GE(memory.allocated().peak, memory.allocated().now);
    together.arrive_and_wait();
    if (rank != RankId{0}) {
      together.arrive_and_wait();
      return;
    }
    EXPECT_EQ(held[0] + held[1] + held[2], allocator_statistics(device_)->allocated.now - before);
    together.arrive_and_wait();
  });
}

struct PlannedRank {
  std::vector<Bytes> planned, measured;
};

/// A profile of the device, a plan of two ranks made from it, and the plan's steps.
PlannedRank planned_and_measured(const Model& model, at::Device device) {
  ProfileOptions options{
      .placing = {.device = device},
      .training = {Precision::Fp32, Optimizer::Adam, model.graph.microbatch_size},
      .device_kind = "card",
      .repetitions = 3,
      .microbatches = 2};
  ProfileReport report;
  run_ranks(1, device, [&](RankId, Transport& transport) {
    report = profile_model(model.graph, model.source, options, &transport);
  });
  std::cout << to_string(report, model.graph);
  const Layers layers = layers_from_graph(model.graph, {report.profile});
  std::vector<std::int32_t> legal;
  for (std::int32_t cut = 0; cut + 1 < static_cast<std::int32_t>(layers.size()); ++cut)
    if (layers.layers[static_cast<std::size_t>(cut)].no_cut_after.empty()) legal.push_back(cut);
  const Partition partition{{legal.at(legal.size() / 2)}};
  DeviceKind kind = read_cluster(source_folder() / "configs/clusters/laptop.yaml").kinds.front();
  kind.name = "card";
  const ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
  const Placement placement = placement_for(spec);
  const StageCosts costs = stage_costs(
      layers, partition, placement, uniform_cluster(2, kind, BytesPerSecond{1e9}, Nanoseconds{1}));
  const NodeId cut = layers.layers[static_cast<std::size_t>(partition.cuts[0])].nodes.back();
  const Pipeline pipeline = make_pipeline(model.graph, std::vector{cut}, generate(spec), placement);
  PlannedRank result{peak_memory(pipeline.schedule, costs, placement), {}};
  RandomTurns turns;
  run_ranks(2, device, [&](RankId rank, Transport& transport) {
    const auto [measured, steps, clocks] =
        measure_steps(pipeline, rank, model.source, {.placing = {.device = device}}, 4,
                      /*count_memory=*/true, turns, {}, transport);
    if (rank == RankId{0}) result.measured = measured.peak_memory;
  });
  return result;
}

// The plan is a bound: a profile's temporaries are those of the whole model's passes, the long
// skips' gradients included, and count as if the largest met the highest level; a receive buffer is
// planned from its RECV on, and here it is made when it is used. What CUDA adds: blocks of whole
// 512 bytes, and the workspaces of its libraries.
TEST_P(OnDevice, MeasuredMemoryOfStagesIsWithinThePlanned) {
  const Model model(is_stand_in() ? "tiny_unet" : "gpt_cpu");
  const double workspaces = is_stand_in() ? 0 : 64 << 20;
  const PlannedRank found = planned_and_measured(model, device_);
  ASSERT_EQ(found.measured.size(), found.planned.size());
  for (std::size_t r = 0; r < found.planned.size(); ++r) {
    const double planned = static_cast<double>(found.planned[r].value),
                 measured = static_cast<double>(found.measured[r].value);
    std::cout << "rank " << r << ": planned " << to_string(found.planned[r]) << ", measured "
              << to_string(found.measured[r]) << "\n";
    EXPECT_LE(measured, 1.02 * planned + workspaces);
    EXPECT_GE(measured, 0.6 * planned);
  }
}

// Every node of the file has a time, and they add up to the pass.
TEST_P(OnDevice, NodesOfAProfileAddUpToThePass) {
  const Model model("tiny_mlp");
  ProfileReport report;
  run_ranks(1, device_, [&](RankId, Transport& transport) {
    report =
        profile_model(model.graph, model.source,
                      {.placing = {.device = device_},
                       .training = {Precision::Fp32, Optimizer::Sgd, model.graph.microbatch_size},
                       .device_kind = "card",
                       .repetitions = 3,
                       .microbatches = 2},
                      &transport);
  });
  std::cout << to_string(report, model.graph);
  Nanoseconds sum{0};
  for (std::size_t n = 0; n < model.graph.nodes.size(); ++n) {
    sum += report.profile.nodes[n].forward;
    EXPECT_GT(report.profile.nodes[n].forward, Nanoseconds{0}) << model.graph.nodes[n].name;
  }
  EXPECT_NEAR(milliseconds(sum), milliseconds(report.forward.whole),
              1e-6 * static_cast<double>(model.graph.nodes.size()));
  EXPECT_EQ(report.profile.device_kind, "card");
}

INSTANTIATE_TEST_SUITE_P(Devices, OnDevice, ::testing::Values("cuda", "stand_in"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pfeife
