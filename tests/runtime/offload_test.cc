// Rows with OFFLOAD and RELOAD: gradients stay those of the unsplit model, and between the two the
// device does not hold what was copied. How far peaks sink: planned_memory_test.cc.
#include <gtest/gtest.h>

#include "planner/ir/schedule/lower.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/transport/transport.h"
#include "tests/runtime/offloading_rows.h"
#include "tests/runtime/same.h"

namespace pfeife {
namespace {

using namespace testing;

/// Runs some steps, each of which adds to the gradients; `held`: [step] bytes of the host's memory
/// that all ranks have.
Outcome run_offloading(const Pipeline& pipeline, const Model& model, const RankOptions& options,
                       std::vector<Bytes>& held) {
  std::mutex mutex;
  held.assign(3, Bytes{0});
  return run_with(pipeline, model.source, options, [&](RankPipeline& own) {
    std::vector<TaskRecord> records;
    for (std::size_t step = 0; step < held.size(); ++step) {
      records = own.step(inputs_of(pipeline, step, options.placing));
      const std::lock_guard lock(mutex);
      held[step] += own.host_engines().held();
    }
    return records;
  });
}

/// The models are small.
constexpr Bytes kLeast{64};

class Offloading : public ::testing::TestWithParam<std::string> {};

// To the bit against the same rows without copies; within the tolerance of equivalence_test.cc
// against the unsplit model. Host memory is taken in the first step alone.
TEST_P(Offloading, GivesTheGradientsOfTheUnsplitModel) {
  const Model model(GetParam());
  const RunOptions options{.steps = 3};
  const Outcome whole = run(model.unsplit(4), model.source, options);
  for (const ScheduleSpec& spec :
       {ScheduleSpec{"1f1b", 2, 4, 1, {}, {}}, ScheduleSpec{"1f1b", 4, 4, 1, {}, {}},
        ScheduleSpec{"interleaved_1f1b", 2, 4, 2, {}, {}}, ScheduleSpec{"gpipe", 2, 4, 1, {}, {}},
        ScheduleSpec{"zb_h1", 2, 4, 1, {}, {}}}) {
    const Outcome without = run(model.pipeline(spec), model.source, options);
    Bytes of_all{0};
    for (const double share : {1.0, 0.5}) {
      const std::string name = name_of(spec) + stream_all(" ", share);
      const Pipeline pipeline = offloading_pipeline(model, spec);
      RankOptions rank = options.rank;
      rank.offload.assign(pipeline.stages.stages, share);
      rank.least_offloaded = kLeast;
      std::vector<Bytes> held;
      const Outcome found = run_offloading(pipeline, model, rank, held);
      expect_same(pipeline, found, whole, 1e-12, name);
      EXPECT_EQ(largest_difference(found.gradients, without.gradients), 0) << name;
      EXPECT_GT(held.front(), Bytes{0}) << name;
      EXPECT_EQ(held.back(), held.front()) << name;
      if (share == 1)
        of_all = held.front();
      else
        EXPECT_LT(held.front(), of_all) << name;
    }
  }
}

// Whole stages move what they received, blocks what they begin with.
TEST_P(Offloading, BesideRecomputationMovesWhatIsKept) {
  const Model model(GetParam());
  const ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
  const Pipeline pipeline = offloading_pipeline(model, spec);
  const Outcome whole = run(model.unsplit(4), model.source, {.steps = 3});
  RankOptions again{.placing = {.double_precision = true}, .seed = 7, .update = false};
  again.recompute = {true, true};
  again.least_offloaded = kLeast;
  std::vector<Bytes> held;
  expect_same(pipeline, run_offloading(pipeline, model, again, held), whole, 1e-12, "stages");
  again.recompute = {true, false};
  expect_same(pipeline, run_offloading(pipeline, model, again, held), whole, 1e-12, "a stage");
  again.recompute = {};
  for (const StageSlice& stage : pipeline.split.stages) {
    std::vector<std::int32_t> inside;
    for (const NodeId cut : model.legal)
      if (cut > stage.nodes.front() && cut < stage.nodes.back())
        inside.push_back(static_cast<std::int32_t>(cut.value));
    if (inside.size() > 1) again.blocks.push_back({inside.front(), inside.back()});
  }
  expect_same(pipeline, run_offloading(pipeline, model, again, held), whole, 1e-12, "blocks");
  EXPECT_GT(held.back(), Bytes{0});
}

INSTANTIATE_TEST_SUITE_P(Models, Offloading, ::testing::ValuesIn(tiny_models()),
                         [](const auto& info) { return info.param; });

/// tiny_gpt in two stages, the second of which offloads; it has received a microbatch.
struct SecondOffloads {
  explicit SecondOffloads(StageOptions options) {
    count_allocations();
    options.offloaded = {kMicrobatch};
    first = std::make_unique<GraphStage>(model.graph, effects, split, StageId{0}, tensors, turns,
                                         StageOptions{.training = false});
    second = std::make_unique<GraphStage>(model.graph, effects, split, StageId{1}, tensors, turns,
                                          options);
    first->begin(inputs);
    second->begin(inputs);
    message = first->forward(kMicrobatch, {});
    for (at::Tensor& value : message.at(0)) value = value.clone();  // arrived: not the sender's own
  }

  static constexpr MicrobatchId kMicrobatch{0};
  Model model{"tiny_gpt"};
  std::vector<NodeEffects> effects = effects_of(model.graph);
  GraphSplit split = split_graph(model.graph, effects, model.even_cuts(2));
  RankTensors tensors =
      load_tensors(model.graph, split, std::vector{StageId{0}, StageId{1}}, model.source, {});
  RandomTurns turns;
  StepInputs inputs{0, {synthetic_inputs(model.graph, 0, kMicrobatch, {})}, {1.0}};
  std::unique_ptr<GraphStage> first, second;
  PerStage message;
  HostEngines engines{at::kCPU};
};

// After OFFLOAD the allocator has as many bytes less as were copied, and the storages have no
// memory; what others hold is where it was.
TEST(OffloadedStorages, HaveNoMemoryUntilTheyAreReloaded) {
  SecondOffloads on({});
  const MicrobatchId m = on.kMicrobatch;
  on.second->forward(m, on.message);
  const Bytes before = allocated_bytes().now;
  on.second->offload(m, on.engines, now);
  const OnHost& copies = on.second->on_host(m);
  ASSERT_GT(copies.storages.size(), 3U);
  EXPECT_EQ(before - allocated_bytes().now, copies.bytes());
  EXPECT_EQ(on.engines.held(), copies.bytes());
  std::vector<c10::Storage> storages;
  for (const auto& [storage, buffer] : copies.storages) {
    EXPECT_EQ(storage.data(), nullptr);
    EXPECT_GE(storage.nbytes(), 4096U);
    storages.push_back(storage);
  }
  const auto has_memory = [](const at::Tensor& tensor) {
    return tensor.numel() == 0 || tensor.storage().data() != nullptr;
  };
  for (const auto& [p, tensor] : on.tensors.parameters) EXPECT_TRUE(has_memory(tensor));
  for (const auto& [b, tensor] : on.tensors.buffers) EXPECT_TRUE(has_memory(tensor));
  for (const auto& [v, tensor] : on.inputs.microbatches[0]) EXPECT_TRUE(has_memory(tensor));
  for (const at::Tensor& tensor : on.message.at(0)) EXPECT_TRUE(has_memory(tensor));
  on.second->reload(m, on.engines, now);
  for (const c10::Storage& storage : storages) EXPECT_NE(storage.data(), nullptr);
  EXPECT_EQ(allocated_bytes().now, before);
  storages.clear();
  const PerStage back = on.second->backward(m, {});
  for (const at::Tensor& gradient : back.at(0)) EXPECT_TRUE(gradient.defined());
  EXPECT_LT(allocated_bytes().now, before);
}

// It saves nothing else; while another holds the message it stays.
TEST(OffloadedStorages, OfARecomputedStageAreWhatItReceived) {
  for (const bool held_elsewhere : {false, true}) {
    SecondOffloads on({.recompute = true, .least_offloaded = Bytes{1}});
    const MicrobatchId m = on.kMicrobatch;
    Bytes received{0};
    for (const at::Tensor& value : on.message.at(0))
      received += Bytes{static_cast<std::int64_t>(value.storage().nbytes())};
    on.second->forward(m, on.message);
    if (!held_elsewhere) on.message.clear();
    on.second->offload(m, on.engines, now);
    EXPECT_EQ(on.second->on_host(m).bytes(), held_elsewhere ? Bytes{0} : received);
    on.second->reload(m, on.engines, now);
    const PerStage back = on.second->backward(m, {});
    for (const at::Tensor& gradient : back.at(0)) EXPECT_TRUE(gradient.defined());
  }
}

}  // namespace
}  // namespace pfeife
