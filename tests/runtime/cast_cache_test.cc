// Autocast: what a stage casts is its own, whatever ranks beside it do, and is what torch's
// autocast makes of the unsplit model.
#include "runtime/model/cast_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <sstream>

#include "planner/io/plan/plan_file.h"
#include "runtime/model/stage_program.h"
#include "runtime/model/weights.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using namespace testing;

constexpr std::size_t kCount = 4;  // microbatches

RankOptions under(at::ScalarType type) {
  return {.autocast = type, .time_actions = false, .seed = 7, .update = false};
}

struct AutocastStep {
  std::vector<double> losses;
  std::map<ParameterId, at::Tensor> gradients;
};

/// The unsplit model, operator by operator, with torch's own autocast and its cache of casts as
/// `with torch.autocast(...)` around each microbatch's forward has them.
AutocastStep by_torch(const Model& model, at::ScalarType type) {
  const Pipeline whole = model.unsplit(kCount);
  const std::vector<NodeEffects> effects = effects_of(model.graph);
  const GraphSplit split = whole_graph(model.graph, effects);
  const StageProgram program = compile_stage(model.graph, effects, split.stages[0], {}, {},
                                             {.placing = {}, .plain_backward = true});
  RankTensors tensors =
      load_tensors(model.graph, split, std::vector<StageId>{StageId{0}}, model.source, {});
  const StepInputs inputs = inputs_of(whole, 0, {});
  const ValueId loss_value = loss_of(model.graph);
  AutocastStep made;
  for (std::size_t m = 0; m < kCount; ++m) {
    std::vector<at::Tensor> values(model.graph.values.size());
    for (const auto& [p, tensor] : tensors.parameters)
      values[model.graph.parameters[p.index()].value.index()] = tensor;
    for (const auto& [b, tensor] : tensors.buffers) values[b.index()] = tensor;
    for (const auto& [i, tensor] : inputs.microbatches[m]) values[i.index()] = tensor;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, type);
    at::autocast::set_autocast_cache_enabled(true);
    for (const Instruction& instruction : program) {
      std::vector<c10::IValue> stack = arguments(instruction, values);
      if (instruction.random) {  // as a stage seeds it
        at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
        generator.set_current_seed(
            mixed_seed({7, 0, m, hash_of(model.graph.nodes[instruction.node].name)}));
      }
      instruction.call.op.callBoxed(stack);
      const auto list = instruction.returns_list ? stack.at(0).toTensorVector() : Tensors{};
      for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
        if (instruction.returns_list)
          values[instruction.outputs[i].index()] = list.at(i);
        else if (stack.at(i).isTensor())
          values[instruction.outputs[i].index()] = stack[i].toTensor();
    }
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    const at::Tensor loss = values[loss_value.index()];
    made.losses.push_back(loss.item<double>());
    torch::autograd::backward({loss}, {at::full_like(loss, inputs.shares[m])});
  }
  for (const auto& [p, tensor] : tensors.parameters)
    if (tensor.grad().defined()) made.gradients[p] = tensor.grad();
  return made;
}

/// Largest difference of a number of the gradients; infinity if one is missing.
double largest_gap(const std::map<ParameterId, at::Tensor>& a,
                   const std::map<ParameterId, at::Tensor>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (const auto& [p, tensor] : a)
    largest = std::max(largest, (tensor - b.at(p)).abs().max().item<double>());
  return largest;
}

// To the bit with autograd's own backward: the casts are torch's, as many and as long. With
// functions that leave weights for later also, where each weight has one reader. Where it has
// several, torch adds its gradients up in 16 bits, where they meet in the one cast; these functions
// add in float32. The difference is the rounding of that sum: 2^-8 in bf16, 2^-11 in fp16.
// (tiny_gpt's embedding is added in float32 by both, in another order: sixteen roundings at most.)
TEST(CastCache, AStageOfAllIsTorchsAutocast) {
  const std::map<std::string, bool> has_shared_products{
      {"tiny_mlp", false}, {"tiny_convnet", false}, {"tiny_gpt", false}, {"tiny_shared", true}};
  for (const auto& [type, rounding] :
       {std::pair{at::kBFloat16, 1.0 / 256}, {at::kHalf, 1.0 / 2048}})
    for (const auto& [name, shared] : has_shared_products) {
      const Model model(name);
      const AutocastStep expected = by_torch(model, type);
      for (const bool plain : {true, false}) {
        SCOPED_TRACE(stream_all(name, " ", type, plain ? " plain" : " deferred"));
        Pipeline whole = model.unsplit(kCount);
        whole.plain_backward = plain;
        const Outcome found = run(whole, model.source, {.rank = under(type)});
        EXPECT_EQ(found.losses, expected.losses);
        if (plain || (!shared && name != "tiny_gpt"))
          EXPECT_EQ(largest_gap(found.gradients, expected.gradients), 0);
        else
          EXPECT_LE(largest_difference(found.gradients, expected.gradients),
                    shared ? rounding : 0x1p-20);
      }
    }
}

// Ranks as threads against the same stages one after the other on one rank. No weights that stages
// share: their gradients are added up in another order.
TEST(CastCache, RanksBesideEachOtherMakeTheBitsOfStagesInTurn) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
    for (const std::string name : {"tiny_mlp", "tiny_convnet", "tiny_unet"})
      for (const bool plain : {true, false}) {
        const Model model(name);
        const auto made = [&](const ScheduleSpec& spec) {
          Pipeline pipeline = model.pipeline(spec);
          pipeline.plain_backward = plain;
          return run(pipeline, model.source, {.rank = under(type)});
        };
        const Outcome in_turn = made({"looped_bfs", 1, kCount, 4, {}, {}});
        const Outcome beside = made({"looped_bfs", 2, kCount, 2, {}, {}});
        EXPECT_EQ(beside.losses, in_turn.losses) << name << " " << type;
        EXPECT_EQ(largest_gap(beside.gradients, in_turn.gradients), 0) << name << " " << type;
      }
}

// By hand: a weight that is read before and after what another rank does meanwhile. One cast for
// both readers, whatever the other one begins, ends or empties.
TEST(CastCache, IsEmptiedByNobodyElse) {
  const at::Tensor x = at::randn({64, 64}), weight = at::randn({64, 64});
  std::vector<at::Tensor> gradients;
  for (const bool disturbed : {false, true}) {
    std::barrier together(2);
    at::Tensor w = weight.clone().set_requires_grad(true);
    run_ranks(2, at::kCPU, [&](RankId rank, Transport&) {
      CastCache casts(at::kBFloat16, at::kCPU);
      if (rank == RankId{1}) {
        together.arrive_and_wait();
        if (disturbed) {
          const CastCache::Forward other(casts);
          at::linear(x, casts.narrow(w));
          at::autocast::clear_cache();
        }
        together.arrive_and_wait();
        return;
      }
      at::Tensor sum;
      {
        const CastCache::Forward forward(casts);
        sum = at::linear(x, casts.narrow(w)).to(at::kFloat).square().sum();
        const at::Tensor before = casts.narrow(w);
        together.arrive_and_wait();
        together.arrive_and_wait();
        EXPECT_TRUE(casts.narrow(w).is_same(before));
        sum = sum + at::linear(x, casts.narrow(w)).to(at::kFloat).sum();
        EXPECT_EQ(casts.kept(), 1u);
      }
      EXPECT_EQ(casts.kept(), 0u) << "a later forward sees the weight of its time";
      EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
      EXPECT_TRUE(at::autocast::is_autocast_cache_enabled()) << "as it was before";
      torch::autograd::backward({sum}, {at::ones({})});
    });
    gradients.push_back(w.grad());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

// Two ranks give their operators no cast at hand: LibTorch's map, if they used it, would be shared.
TEST(CastCache, OperatorsLeaveLibTorchsMapAlone) {
  const at::Tensor x = at::randn({8, 8});
  at::Tensor w = at::randn({8, 8}).set_requires_grad(true);
  const long before = w.use_count();
  CastCache casts(at::kBFloat16, at::kCPU);
  {
    const CastCache::Forward forward(casts);
    at::linear(x, w);
    EXPECT_EQ(w.weak_use_count(), 1u) << "LibTorch's map keeps a weak pointer";
  }
  EXPECT_EQ(w.use_count(), before);
}

/// LibTorch's list is for all devices; a processor has kernels of some.
TEST(CastCache, KnowsWhatADeviceReadsNarrow) {
  const auto narrow = [](const char* name, const char* overload) {
    return reads_narrow(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload), at::kCPU);
  };
  EXPECT_TRUE(narrow("aten::linear", ""));
  EXPECT_TRUE(narrow("aten::conv2d", ""));
  EXPECT_TRUE(narrow("aten::conv_transpose2d", "input"));
  EXPECT_FALSE(narrow("aten::einsum", "")) << "its products cast";
  EXPECT_FALSE(narrow("aten::mse_loss", "")) << "reads float32";
  EXPECT_FALSE(narrow("aten::layer_norm", ""));
  EXPECT_FALSE(narrow("aten::embedding", ""));
}

class CastsOfProcesses : public ProcessTest {
 protected:
  /// The outcome of four steps that update, as a file with all digits.
  std::string losses(const std::string& model, Precision precision, bool threads) const {
    const Model read(model);
    const ScheduleSpec spec{"interleaved_1f1b", 2, 4, 2, {}, {}};
    Plan plan;
    plan.model = model_path(model).string();
    plan.model_digest = read.graph.digest;
    plan.training = {precision, Optimizer::Sgd, read.graph.microbatch_size};
    plan.spec = spec;
    plan.placement = placement_for(spec);
    plan.schedule = read.pipeline(spec).schedule;
    for (const NodeId cut : read.even_cuts(plan.placement.stages())) {
      plan.partition.cuts.push_back(static_cast<std::int32_t>(plan.partition.cuts.size()));
      plan.cut_modules.push_back("");
      plan.cut_nodes.push_back(cut.value);
    }
    plan.activations.stages.assign(plan.placement.stages(), false);
    plan.peak_memory.assign(plan.placement.ranks(), Bytes{0});
    write_plan(folder_, plan);
    const std::filesystem::path out = folder_ / "losses.csv";
    std::vector<std::string> command{PFEIFE_RUN,
                                     "train",
                                     (folder_ / "plan.yaml").string(),
                                     "--steps",
                                     "4",
                                     "--save",
                                     (folder_ / "save").string(),
                                     "--learning-rate",
                                     "0.05",
                                     "--out",
                                     out.string()};
    if (threads) command.push_back("--threads");
    const Ended ended = start(command)->wait(kLong);
    EXPECT_EQ(ended.code, 0) << ended.text;
    std::istringstream lines(content_of(out));
    std::string all;
    for (std::string line; std::getline(lines, line);)
      all += line.substr(line.find(',', line.find(',') + 1)) + " ";  // without the time
    return all;
  }
};

// Weights that several stages and several operators share among them.
TEST_F(CastsOfProcesses, AreThoseOfThreadsToTheBit) {
  for (const char* model : {"tiny_gpt", "tiny_shared"})
    for (const Precision precision : {Precision::Bf16Amp, Precision::Fp16Amp}) {
      const std::string apart = losses(model, precision, false);
      EXPECT_EQ(losses(model, precision, true), apart) << model << " " << to_string(precision);
      EXPECT_EQ(std::ranges::count(apart, ' '), 5) << apart;
    }
}

}  // namespace
}  // namespace pfeife
