// Losses that are means over labels, and batches that are not the first dimension: a step has the
// loss and the gradients that plain torch computes for the whole batch at once
// (tests/data/models/batches.py).
#include <gmock/gmock.h>

#include "runtime/execute/check.h"
#include "runtime/train/training.h"
#include "tests/runtime/npy_file.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/split_batch.h"
#include "tests/runtime/stored_values.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr const char* kFolder = "tests/data/models/batches";
constexpr std::int64_t kSamples = 8;

/// What a step of all replicas leaves.
struct Step {
  double loss = 0;
  std::map<ParameterId, at::Tensor> gradients, parameters;
};

struct WholeBatch : public ::testing::Test {
  explicit WholeBatch(const std::string& name)
      : model(name, kFolder), torch(stored_values(kFolder, name)) {}

  std::map<ValueId, at::Tensor> batch() const {
    std::map<ValueId, at::Tensor> all;
    for (const ValueId id : model.graph.inputs) {
      const Value& input = model.graph.value(id);
      all[id] = torch.at(input.name).to(placed_type(input.type.dtype, plain.placing));
    }
    return all;
  }
  Step step(const Pipeline& pipeline, const std::vector<std::int64_t>& sizes,
            const RankOptions& options) const {
    const StepInputs inputs = split_batch(model.graph, 0, batch(), sizes);
    Step made;
    std::mutex mutex;
    RandomTurns turns;
    run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
      RankPipeline own(pipeline, rank, model.source, options, turns, transport);
      own.step(share_of_replica(inputs, own.replica(), pipeline.microbatches));
      const std::lock_guard lock(mutex);
      made.loss += own.mean_loss().value_or(0);
      for (const auto& [p, tensor] : own.tensors().parameters) {
        made.parameters[p] = tensor.detach().clone();
        if (tensor.grad().defined()) made.gradients[p] = tensor.grad().clone();
      }
    });
    return made;
  }
  void expect_torchs(const Step& made, const std::string& what) const {
    EXPECT_NEAR(made.loss, torch.at("loss").item<double>(), 1e-12) << what;
    for (std::size_t p = 0; p < model.graph.parameters.size(); ++p) {
      const std::string& name = model.graph.parameters[p].names.front();
      const at::Tensor& theirs = torch.at("gradient." + name);
      const auto ours = made.gradients.find(ParameterId{p});
      ASSERT_NE(ours, made.gradients.end()) << name << ", " << what;
      EXPECT_LE(distance(ours->second, theirs), 1e-12 * norm_of(theirs)) << name << ", " << what;
    }
  }
  void expect_torchs_everywhere() const;

  const Model model;
  const std::map<std::string, at::Tensor> torch;
  const RankOptions plain{.placing = {.double_precision = true}, .seed = 7, .update = false};
};

/// B in one part and in two, several stages a rank, stages that run side by side.
std::vector<ScheduleSpec> families_for(std::size_t n) {
  return {{"1f1b", 3, n, 1, {}, {}},  {"gpipe", 2, n, 1, {}, {}},
          {"zb_h1", 3, n, 1, {}, {}}, {"zbv", 2, n, 2, {}, {}},
          {"zb1p", 2, n, 2, {}, {}},  {"interleaved_1f1b", 2, n, 2, {}, {}}};
}

void WholeBatch::expect_torchs_everywhere() const {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{2, 2, 2, 2}, {3, 1, 2, 2}, {4, 0, 2, 2}}) {
    for (const ScheduleSpec& spec : families_for(sizes.size())) {
      const Pipeline pipeline = model.pipeline(spec);
      expect_torchs(step(pipeline, sizes, plain), name_of(spec));
      RankOptions again = plain;
      again.recompute.assign(pipeline.stages.stages, true);
      expect_torchs(step(pipeline, sizes, again), name_of(spec) + ", recomputed");
      const ScheduleSpec half{spec.family,          spec.ranks, sizes.size() / 2,
                              spec.stages_per_rank, {},         {}};
      if (refusal(half)) continue;
      Pipeline replicated = model.pipeline(half);
      replicated.replicas = {2, true, 0};
      expect_torchs(step(replicated, sizes, plain), name_of(spec) + ", two replicas");
    }
  }
}

struct Labelled : public WholeBatch {
  Labelled() : WholeBatch("labelled") {}
};
struct SequenceFirst : public WholeBatch {
  SequenceFirst() : WholeBatch("sequence_first") {}
};

TEST_F(Labelled, UnsplitModelHasTorchsLossOfTheWholeBatch) {
  expect_torchs(step(model.unsplit(1), {kSamples}, plain), "one microbatch");
  expect_torchs(step(model.unsplit(4), {2, 2, 2, 2}, plain), "four microbatches");
}

// The third microbatch of two samples has no labels: torch's loss of it alone is 0 / 0.
TEST_F(Labelled, PipelinesHaveTorchsLossAndGradientsOfTheWholeBatch) { expect_torchs_everywhere(); }

TEST_F(Labelled, ClippedUpdatesAreThoseOfTheWholeBatch) {
  RankOptions training = plain;
  training.update = true;
  training.optimizer = {.kind = Optimizer::Sgd, .learning_rate = 0.5, .clip_norm = 0.1};
  const Step whole = step(model.unsplit(1), {kSamples}, training);
  for (const ScheduleSpec& spec : families_for(4)) {
    const Step split = step(model.pipeline(spec), {2, 2, 2, 2}, training);
    EXPECT_LE(largest_difference(split.parameters, whole.parameters), 1e-12) << name_of(spec);
  }
}

TEST_F(Labelled, EvaluationHasTorchsLossOfTheWholeBatch) {
  const Pipeline pipeline = model.pipeline({"1f1b", 2, 4, 1, {}, {}});
  const StepInputs inputs =
      split_batch(model.graph, 0, batch(), std::vector<std::int64_t>{2, 2, 2, 2});
  double loss = 0;
  run_with(pipeline, model.source, plain, [&](RankPipeline& own) {
    own.evaluate(inputs);
    if (const auto made = own.mean_evaluation_loss()) loss = *made;
    return std::vector<TaskRecord>{};
  });
  EXPECT_NEAR(loss, torch.at("loss").item<double>(), 1e-12);
}

TEST_F(Labelled, StepWithoutLabelsIsRefused) {
  auto all = batch();
  for (auto& [id, tensor] : all)
    if (model.graph.value(id).name == "labels") tensor.fill_(-100);
  const StepInputs inputs = split_batch(model.graph, 4, all, std::vector<std::int64_t>{4, 4});
  EXPECT_THAT(message_of<std::exception>([&] {
                run_with(model.pipeline({"1f1b", 2, 2, 1, {}, {}}), model.source, plain,
                         [&](RankPipeline& own) { return own.step(inputs); });
              }),
              HasSubstr("step 5 has nothing that its loss is a mean over"));
}

// The weight must be known before the step.
TEST_F(Labelled, WeightThatReadsAParameterIsRefusedByName) {
  Graph graph = model.graph;
  graph.loss_weight = loss_of(graph);
  EXPECT_THAT(message_of<ConfigError>([&] { loss_weight_graph(graph, effects_of(graph)); }),
              AllOf(HasSubstr("the loss's weight 'cross_entropy_loss' reads '"),
                    HasSubstr("inputs alone")));
}

// Synthetic data leave labels out, so that check sees what it is about.
TEST_F(Labelled, SyntheticMicrobatchesHaveDifferentCountsOfLabels) {
  RandomTurns turns;
  LossWeights weights(model.graph, effects_of(model.graph), model.source, plain.placing, turns);
  const Pipeline pipeline = model.pipeline({"1f1b", 2, 8, 1, {}, {}});
  const std::vector<double> counts =
      weights.of(synthetic_step(pipeline, 0, 1, plain.placing),
                 [&](std::int64_t) -> const Graph& { return model.graph; });
  EXPECT_NE(*std::ranges::min_element(counts), *std::ranges::max_element(counts));
}

TEST_F(SequenceFirst, GraphIsBoundToTheBatch) {
  const Graph larger = model.source.graph(7);
  EXPECT_EQ(larger.microbatch_size, 7);
  for (const auto& [name, dimension, sizes] :
       {std::tuple{"x", 1u, std::vector<std::int64_t>{5, 7, 16}},
        {"positions", 1u, {3, 7, 5}},
        {"y", 0u, {7}}}) {
    const auto id = std::ranges::find_if(
        larger.inputs, [&, name = name](ValueId v) { return larger.value(v).name == name; });
    ASSERT_NE(id, larger.inputs.end()) << name;
    EXPECT_EQ(larger.value(*id).batch_dimension, dimension) << name;
    EXPECT_EQ(larger.value(*id).type.sizes, sizes) << name;
  }
}

TEST_F(SequenceFirst, PipelinesHaveTorchsLossAndGradientsOfTheWholeBatch) {
  expect_torchs(step(model.unsplit(1), {kSamples}, plain), "one microbatch");
  expect_torchs_everywhere();
}

/// The programs on these models, and their data as files.
class WholeBatchProgram : public ProcessTest {
 protected:
  void write(const std::string& name) const {
    const auto torch = stored_values(kFolder, name);
    const Graph graph = read_pt2(model_path(name, kFolder));
    std::filesystem::create_directories(folder_ / "data");
    for (const ValueId id : graph.inputs) {
      const Value& input = graph.value(id);
      const at::Tensor& all = torch.at(input.name);
      const std::vector<double> values(all.const_data_ptr<double>(),
                                       all.const_data_ptr<double>() + all.numel());
      const std::filesystem::path file = folder_ / "data" / (input.name + ".npy");
      if (is_floating(input.type.dtype))
        write_npy(file, "<f4", all.sizes().vec(), std::vector<float>(values.begin(), values.end()));
      else
        write_npy(file, "<i8", all.sizes().vec(),
                  std::vector<std::int64_t>(values.begin(), values.end()));
    }
  }
  /// On three ranks with four microbatches of two samples.
  Ended run(const std::string& model, std::vector<std::string> program) const {
    const Model read(model, kFolder);
    std::string cuts;
    for (const NodeId cut : read.even_cuts(3)) cuts += std::to_string(cut.value) + " ";
    program.insert(program.begin(), PFEIFE_RUN);
    for (const std::string& more :
         {std::string("--cuts"), cuts, std::string("--schedule"), (folder_ / "s.csv").string(),
          std::string("--model"), model_path(model, kFolder).string()})
      program.push_back(more);
    return start(program)->wait(kLong);
  }
};

TEST_F(WholeBatchProgram, CheckFindsThemEqualOverProcesses) {
  for (const char* model : {"labelled", "sequence_first"}) {
    const Ended ended = run(model, {"check", "--fp64"});
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model")) << model;
  }
}

// One microbatch has no labels, which ended a run.
TEST_F(WholeBatchProgram, TrainingSaysTorchsLossOfTheWholeBatch) {
  for (const char* model : {"labelled", "sequence_first"}) {
    write(model);
    const Ended ended = run(model, {"train", "--steps", "1", "--data", (folder_ / "data").string(),
                                    "--out", (folder_ / "losses.csv").string()});
    ASSERT_EQ(ended.code, 0) << ended.text;
    const std::string text = content_of(folder_ / "losses.csv");
    const std::size_t line = text.find('\n') + 1, time = text.find(',', line) + 1;
    EXPECT_NEAR(std::stod(text.substr(text.find(',', time) + 1)),
                stored_values(kFolder, model).at("loss").item<double>(), 1e-5)
        << model;
  }
}

TEST_F(WholeBatchProgram, TrainingRefusesDataInAnotherOrder) {
  write("sequence_first");
  write_npy(folder_ / "data/x.npy", "<f4", {8, 5, 16}, std::vector<float>(640));
  const Ended ended =
      run("sequence_first", {"train", "--steps", "1", "--data", (folder_ / "data").string()});
  EXPECT_EQ(ended.code, 2) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("x.npy: has the shape [8, 5, 16], the input 'x' needs "
                                    "[5, samples, 16]"));
}

}  // namespace
}  // namespace pfeife
