// The profiler: bytes against two counts that share no code with it, and what may be said of times
// without measuring them.
#include "runtime/profile/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/saved.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/profile_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/counting_allocator.h"
#include "runtime/profile/node_passes.h"
#include "runtime/profile/part_steps.h"
#include "runtime/transport/in_process_transport.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using testing::model_path;

NodeId node(std::int64_t n) { return NodeId{n}; }
const void* address(int n) { return reinterpret_cast<const void*>(static_cast<std::intptr_t>(n)); }

// By hand. In the pass [0, 8): node 0 allocates 100 B and 10 B, of which the 100 B are kept; node 1
// allocates 50 B, frees the 10 B, then the 50 B.
TEST(AllocationLog, TemporaryIsWhatAPassFreesAgain) {
  AllocationLog log(3);
  log.enter(node(0));
  log.allocated(address(1), Bytes{100});
  log.allocated(address(2), Bytes{10});
  log.enter(node(1));
  log.allocated(address(3), Bytes{50});
  log.freed(address(2), Bytes{10});
  log.freed(address(3), Bytes{50});
  const std::size_t forward = log.here();
  EXPECT_EQ(log.kept(0, forward), Bytes{100});
  EXPECT_EQ(log.temporary(0, forward), (std::vector<Bytes>{{10}, {60}, {0}}));
  EXPECT_EQ(log.highest(0, forward), (std::vector<Bytes>{{110}, {160}, {0}}));
  // The way back: node 1 makes 7 B that node 0 frees with the 100 B; unknown memory is freed, too.
  log.enter(node(1));
  log.allocated(address(3), Bytes{7});  // an address is used again
  log.enter(node(0));
  log.freed(address(1), Bytes{100});
  log.freed(address(3), Bytes{7});
  log.freed(address(9), Bytes{1});
  EXPECT_EQ(log.kept(forward, log.here()), Bytes{0});
  EXPECT_EQ(log.temporary(forward, log.here()), (std::vector<Bytes>{{7}, {7}, {0}}));
  EXPECT_EQ(log.kept(0, log.here()), Bytes{0});
}

/// A whole model as one stage that does B, and one that does I and W, gradients made.
struct WholeModel {
  explicit WholeModel(const std::string& name)
      : graph(read_pt2(model_path(name))),
        effects(effects_of(graph)),
        split(whole_graph(graph, effects)),
        tensors(load_tensors(graph, split, std::vector<StageId>{StageId{0}},
                             WeightSource(model_path(name), 0), {})),
        joint(graph, effects, split, StageId{0}, tensors, turns, {}),
        halved(graph, effects, split, StageId{0}, tensors, turns, {.split_backward = true}) {
    inputs.shares = {1.0};
    inputs.microbatches = {synthetic_inputs(graph, 0, MicrobatchId{0}, {})};
    count_allocations();
    joint.begin(inputs);
    joint.forward(MicrobatchId{0}, {});
    joint.backward(MicrobatchId{0}, {});
    joint.begin(inputs);
    halved.begin(inputs);
  }
  NodeMemory measure() { return measure_memory(graph, tensors, inputs, joint, halved); }

  Graph graph;
  std::vector<NodeEffects> effects;
  GraphSplit split;
  RankTensors tensors;
  RandomTurns turns;
  GraphStage joint, halved;
  StepInputs inputs;
};

class ProfiledModel : public ::testing::TestWithParam<const char*> {
 protected:
  ProfiledModel() { at::set_num_threads(1); }
};

/// Bytes of storages that are inputs of the model, which nobody allocates in a pass.
Bytes inputs_among(const Graph& graph, const std::vector<SavedStorage>& storages, bool for_weight) {
  Bytes sum{0};
  for (const SavedStorage& storage : storages)
    if (graph.value(storage.value).role == ValueRole::Input &&
        !(for_weight && storage.weight_savers.empty()))
      sum += storage.bytes;
  return sum;
}

// What autograd was seen to keep, storage by storage, is what the allocator has not got back; the
// loss is there besides.
TEST_P(ProfiledModel, KeptBytesAreWhatTheAllocatorHasNotGotBack) {
  WholeModel model(GetParam());
  const NodeMemory memory = model.measure();
  const Bytes loss{
      static_cast<std::int64_t>(model.joint.loss(MicrobatchId{0})->storage().nbytes())};
  EXPECT_EQ(memory.all_saved() - inputs_among(model.graph, memory.storages, false) + loss,
            memory.kept_after_forward);
  EXPECT_EQ(memory.all_weight_saved() - inputs_among(model.graph, memory.storages, true) + loss,
            memory.kept_after_input);
}

// The planner's rules say the same from the graph alone. Not the gradients that W waits for: one
// that is a view keeps all of the storage it looks at (the part of a concatenation's).
TEST_P(ProfiledModel, KeptStoragesAreThoseOfThePlannersRules) {
  WholeModel model(GetParam());
  const NodeMemory memory = model.measure();
  const SavedMemory rules = saved_memory(GraphFacts(model.graph, Precision::Fp32), DeviceType::Cpu);
  std::map<std::string, SavedStorage> measured, expected;
  for (const SavedStorage& s : memory.storages) measured[model.graph.value(s.value).name] = s;
  for (const SavedStorage& s : rules.storages) expected[model.graph.value(s.value).name] = s;
  for (const auto& [name, storage] : expected)
    EXPECT_TRUE(measured.contains(name) && measured.at(name) == storage) << name;
  EXPECT_EQ(measured.size(), expected.size());
  EXPECT_EQ(memory.saved, rules.node_bytes);
  for (std::size_t n = 0; n < memory.weight_saved.size(); ++n)
    EXPECT_GE(memory.weight_saved[n], rules.node_weight_bytes[n]) << model.graph.nodes[n].name;
}

// The highest level of a forward is at most what it keeps and the largest temporary: the rule by
// which a rank's peak is computed.
TEST_P(ProfiledModel, PeakOfAForwardIsWithinKeptAndTemporary) {
  WholeModel model(GetParam());
  const NodeMemory memory = model.measure();
  model.joint.begin(model.inputs);
  const Bytes before = allocated_bytes().now;
  reset_allocation_peak();
  model.joint.forward(MicrobatchId{0}, {});
  const Bytes peak = allocated_bytes().peak - before;
  EXPECT_EQ(allocated_bytes().now - before, memory.kept_after_forward);
  EXPECT_GE(peak, memory.kept_after_forward);
  EXPECT_LE(peak, memory.kept_after_forward +
                      std::ranges::max(memory.temporary, {}, &PassBytes::forward).forward);
  model.joint.backward(MicrobatchId{0}, {});
}

/// Few repetitions: what is asserted does not depend on time.
ProfileReport quick_profile(const Graph& graph, const std::string& name, Optimizer optimizer,
                            Precision precision = Precision::Fp32) {
  at::set_num_threads(1);
  ProfileOptions options;
  options.training = {precision, optimizer, graph.microbatch_size};
  options.device_kind = "core";
  options.repetitions = 2;
  options.microbatches = 2;
  return profile_model(graph, WeightSource(model_path(name), 0), options);
}

// Nodes add up to the whole (each is rounded to a nanosecond), W belongs to the nodes that defer
// it, and nobody pays who does nothing.
TEST_P(ProfiledModel, NodesAddUpToTheWholeAndPayForWhatTheyDo) {
  const Graph graph = read_pt2(model_path(GetParam()));
  const ProfileReport report = quick_profile(graph, GetParam(), Optimizer::Adam);
  Nanoseconds forward{0}, input{0}, weight{0};
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeProfile& cost = report.profile.nodes[n];
    forward += cost.forward, input += cost.backward_input, weight += cost.backward_weight;
    EXPECT_GT(cost.forward, Nanoseconds{0}) << graph.nodes[n].name;
    EXPECT_EQ(cost.backward_weight > Nanoseconds{0},
              deferred_kind(graph, graph.nodes[n]).has_value())
        << graph.nodes[n].name;
    if (!graph.value(graph.nodes[n].outputs.at(0)).requires_grad) {
      EXPECT_EQ(cost.backward_input, Nanoseconds{0}) << graph.nodes[n].name;
    }
  }
  const auto rounding = static_cast<double>(graph.nodes.size());
  const auto count = [](Nanoseconds time) { return static_cast<double>(time.count()); };
  EXPECT_NEAR(count(forward), count(report.forward.whole), rounding);
  EXPECT_NEAR(count(input), count(report.backward_input.whole), rounding);
  EXPECT_NEAR(count(weight), count(report.backward_weight.whole), rounding);
}

INSTANTIATE_TEST_SUITE_P(Models, ProfiledModel,
                         ::testing::Values("tiny_mlp", "tiny_gpt", "tiny_unet", "tiny_convnet",
                                           "tiny_shared"),
                         [](const auto& info) { return info.param; });

// Two ranks that hand each other what their own next part needs; each is then to have the whole
// model's gradients. Every pass of every part is timed once a microbatch, and none within another.
TEST_P(ProfiledModel, PartsInStepMakeTheGradientsOfTheWhole) {
  const std::string path = model_path(GetParam());
  const Graph graph = read_pt2(path);
  const auto effects = effects_of(graph);
  constexpr std::size_t kMicrobatches = 3;
  StepInputs inputs;
  inputs.shares = equal_shares(kMicrobatches);
  for (std::size_t m = 0; m < kMicrobatches; ++m)
    inputs.microbatches.push_back(synthetic_inputs(graph, 0, MicrobatchId{m}, {}));
  const GraphSplit split = whole_graph(graph, effects);
  const auto load = [&] {
    return load_tensors(graph, split, std::vector<StageId>{StageId{0}}, WeightSource(path, 0), {});
  };
  const StageOptions options{.split_backward = true};
  RankTensors of_whole = load();
  RandomTurns turns;
  GraphStage whole(graph, effects, split, StageId{0}, of_whole, turns, options);
  whole.begin(inputs);
  for (std::size_t m = 0; m < kMicrobatches; ++m) {
    whole.forward(MicrobatchId{m}, {});
    whole.backward_input(MicrobatchId{m}, {});
    whole.backward_weight(MicrobatchId{m});
  }
  InProcessHub hub(2);
  const auto rank = [&](std::size_t r) {
    at::set_num_threads(1);
    const auto transport = hub.transport(RankId{r});
    RankTensors tensors = load();
    PartSteps parts(graph, effects, 4, tensors, turns, options, transport.get());
    ASSERT_GE(parts.parts(), 2U);
    std::map<std::pair<int, std::size_t>, std::size_t> timed;
    bool running = false;
    parts.run(inputs, [&](PartSteps::Pass pass, std::size_t part, const auto& action) {
      EXPECT_FALSE(std::exchange(running, true));
      action();
      running = false;
      ++timed[{pass, part}];
    });
    EXPECT_EQ(timed.size(), 3 * parts.parts());
    for (const auto& [kind, count] : timed) EXPECT_EQ(count, kMicrobatches);
    for (const auto& [p, expected] : of_whole.parameters)
      if (expected.grad().defined()) {
        EXPECT_TRUE(at::allclose(tensors.parameters.at(p).grad(), expected.grad(), 1e-4, 1e-6))
            << graph.parameters[p.index()].names.front();
      }
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
}

// Two ranks of which each runs every other part of the first microbatch, twice: together they have
// twice its gradients. Each pass that something was received for is timed after the wait and
// without.
TEST_P(ProfiledModel, PartsInTurnsMakeTheGradientsOfAMicrobatchTwice) {
  const std::string path = model_path(GetParam());
  const Graph graph = read_pt2(path);
  const auto effects = effects_of(graph);
  StepInputs inputs;
  inputs.shares = equal_shares(1);
  inputs.microbatches.push_back(synthetic_inputs(graph, 0, MicrobatchId{0}, {}));
  const GraphSplit split = whole_graph(graph, effects);
  const auto load = [&] {
    return load_tensors(graph, split, std::vector<StageId>{StageId{0}}, WeightSource(path, 0), {});
  };
  const StageOptions options{.split_backward = true};
  RankTensors of_whole = load();
  RandomTurns random;
  GraphStage whole(graph, effects, split, StageId{0}, of_whole, random, options);
  whole.begin(inputs);
  whole.forward(MicrobatchId{0}, {});
  whole.backward_input(MicrobatchId{0}, {});
  whole.backward_weight(MicrobatchId{0});
  InProcessHub hub(2);
  std::vector<RankTensors> tensors{load(), load()};
  const auto rank = [&](std::size_t r) {
    at::set_num_threads(1);
    const auto transport = hub.transport(RankId{r});
    PartSteps parts(graph, effects, 4, tensors[r], random, options, transport.get());
    std::map<PartSteps::Turn, std::size_t> timed;
    parts.take_turns(inputs, [&](PartSteps::Turn turn, Nanoseconds time) {
      ++timed[turn];
      EXPECT_GE(time, Nanoseconds{0});
    });
    EXPECT_EQ(timed[PartSteps::AfterWait], timed[PartSteps::Arrival]);
    EXPECT_EQ(timed[PartSteps::WithoutWait], timed[PartSteps::Arrival]);
    EXPECT_GT(timed[PartSteps::Sending], 0U);
    EXPECT_EQ(timed[PartSteps::Echo] > 0, r == 0);
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
  for (const auto& [p, expected] : of_whole.parameters) {
    if (!expected.grad().defined()) continue;
    at::Tensor sum = at::zeros_like(expected);
    for (RankTensors& of_rank : tensors)
      if (const at::Tensor& made = of_rank.parameters.at(p).grad(); made.defined())
        sum = sum + made.to_dense();
    EXPECT_TRUE(at::allclose(sum, 2 * expected.grad().to_dense(), 1e-4, 1e-6))
        << graph.parameters[p.index()].names.front();
  }
}

TEST(Profiler, OptimizerStateIsThatOfTheOptimizer) {
  const Graph graph = read_pt2(model_path("tiny_mlp"));
  for (const Optimizer optimizer :
       {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam, Optimizer::AdamW}) {
    const Profile profile = quick_profile(graph, "tiny_mlp", optimizer).profile;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p)
      EXPECT_EQ(profile.parameters[p].state,
                optimizer_state(optimizer, graph.parameters[p].type.bytes()))
          << to_string(optimizer) << " " << graph.parameters[p].names.front();
  }
}

TEST(Profiler, ItsFileIsWhatThePlannerReads) {
  const Graph graph = read_pt2(model_path("tiny_unet"));
  const Profile profile = quick_profile(graph, "tiny_unet", Optimizer::Sgd).profile;
  const auto file = std::filesystem::temp_directory_path() /
                    ("pfeife_profile_" + std::to_string(getpid()) + ".yaml");
  write_file(file, profile_text(profile, graph));
  EXPECT_EQ(read_profile(file, graph), profile);
  check_profile(profile, file, {Precision::Fp32, Optimizer::Sgd, graph.microbatch_size}, "core");
  std::filesystem::remove(file);
  const Layers layers = layers_from_graph(graph, {profile});
  Bytes kept{0};
  for (const Layer& layer : layers.layers) kept += layer.saved;
  for (const LayerStorage& storage : layers.storages) kept += storage.bytes;
  Bytes measured{0};
  for (const NodeProfile& cost : profile.nodes) measured += cost.saved;
  for (const SavedStorage& storage : profile.storages) measured += storage.bytes;
  EXPECT_EQ(kept, measured);
}

// With a loss scale, as in training: the planner reads such a profile, for fp16 alone. What
// products make is kept in 16 bits.
TEST(Profiler, Fp16IsProfiledOnAProcessor) {
  for (const char* name : {"tiny_mlp", "tiny_gpt", "tiny_convnet"}) {
    const Graph graph = read_pt2(model_path(name));
    const Profile half = quick_profile(graph, name, Optimizer::AdamW, Precision::Fp16Amp).profile;
    const auto file = std::filesystem::temp_directory_path() /
                      ("pfeife_fp16_" + std::to_string(getpid()) + ".yaml");
    write_file(file, profile_text(half, graph));
    EXPECT_EQ(read_profile(file, graph), half);
    const std::int64_t samples = graph.microbatch_size;
    check_profile(half, file, {Precision::Fp16Amp, Optimizer::AdamW, samples}, "core");
    EXPECT_THROW(check_profile(half, file, {Precision::Bf16Amp, Optimizer::AdamW, samples}, "core"),
                 ConfigError);
    std::filesystem::remove(file);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      EXPECT_GT(half.nodes[n].forward, Nanoseconds{0}) << graph.nodes[n].name;
    for (const ParameterProfile& parameter : half.parameters)
      EXPECT_GT(parameter.optimizer, Nanoseconds{0});
    const auto kept = [](const Profile& profile) {
      Bytes sum{0};
      for (const SavedStorage& storage : profile.storages) sum += storage.bytes;
      return sum;
    };
    EXPECT_LT(kept(half), kept(quick_profile(graph, name, Optimizer::AdamW).profile)) << name;
  }
}

// LibTorch's processors have no log_ndtr in fp16, which stands here in the place of an activation.
TEST(Profiler, SaysWhichOperatorHasNoFp16Kernel) {
  Graph graph = read_pt2(model_path("tiny_mlp"));
  const auto activation = std::ranges::find_if(graph.nodes, [](const Node& node) {
    return node.op == "aten::relu" || node.op == "aten::gelu" || node.op == "aten::tanh";
  });
  ASSERT_NE(activation, graph.nodes.end());
  activation->op = "aten::special_log_ndtr";
  std::erase_if(activation->arguments, [](const Argument& a) { return a.name != "self"; });
  EXPECT_NO_THROW(quick_profile(graph, "tiny_mlp", Optimizer::Sgd));
  const std::string message = message_of<RuntimeFault>(
      [&] { quick_profile(graph, "tiny_mlp", Optimizer::Sgd, Precision::Fp16Amp); });
  EXPECT_THAT(message, ::testing::HasSubstr("no fp16 kernel on "));
  EXPECT_THAT(message, ::testing::HasSubstr("'" + activation->name + "' (aten::special_log_ndtr)"));
  EXPECT_THAT(message, ::testing::HasSubstr("--precision bf16_amp"));
}

}  // namespace
}  // namespace pfeife
