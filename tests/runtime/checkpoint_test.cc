// Checkpoints: training that continues under another plan has the losses of one that was never
// interrupted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <random>

#include "planner/ir/basics/error.h"
#include "runtime/model/safetensors_file.h"
#include "runtime/train/training.h"
#include "tests/runtime/npy_file.h"
#include "tests/runtime/pipelines.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using testing::write_npy;

class Folder : public ::testing::Test {
 protected:
  Folder()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("checkpoint_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Folder() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.push_back(entry.path().filename());
    std::ranges::sort(found);
    return found;
  }

  std::filesystem::path folder_;
};

RankOptions options_of(Optimizer kind) {
  RankOptions options{.placing = {.double_precision = true}, .seed = 7};
  options.optimizer.kind = kind;
  options.optimizer.weight_decay = 0.01;
  return options;
}

/// The losses of the steps.
std::vector<double> train_on_threads(const testing::Model& model, const ScheduleSpec& spec,
                                     const RankOptions& options, const TrainingSettings& settings) {
  const Pipeline pipeline = model.pipeline(spec);
  std::vector<double> losses;
  RandomTurns turns;
  run_ranks(pipeline.ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
    train(pipeline, model.source, options, settings, {rank, transport, turns, {}},
          [&](const StepProgress& progress) { losses.push_back(progress.loss); });
  });
  return losses;
}

/// What is said of a checkpoint that is not what was written; "" of one that is.
std::string damage(const std::filesystem::path& checkpoint) {
  return message_of([&] {
    const CheckpointInfo info = read_checkpoint_info(checkpoint / "checkpoint.json");
    std::vector<std::string> names;
    for (const auto& [name, digest] : info.digests) names.push_back(name);
    require_digests(checkpoint, info, names);
  });
}

void flip_bit(const std::filesystem::path& file, std::uint64_t bit) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = stream.get() ^ (1 << (bit % 8));
  stream.seekp(static_cast<std::streamoff>(bit / 8));
  stream.put(static_cast<char>(byte));
}

void replace_in(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), to);
  std::ofstream(file) << text;
}

const ScheduleSpec kTwoRanks{"1f1b", 2, 4, 1, {}, {}};
const ScheduleSpec kOthers[] = {
    {"1f1b", 1, 4, 1, {}, {}}, {"zb_h1", 3, 4, 1, {}, {}}, {"interleaved_1f1b", 2, 4, 2, {}, {}}};

class Continued : public Folder {
 protected:
  void expect_equal(const std::string& name, Optimizer kind) {
    const testing::Model model(name);
    const RankOptions options = options_of(kind);
    const auto uninterrupted = train_on_threads(model, kTwoRanks, options, {.steps = 6});
    train_on_threads(model, kTwoRanks, options, {.steps = 3, .save = folder_});
    for (const ScheduleSpec& spec : kOthers) {
      const auto continued = train_on_threads(model, spec, options,
                                              {.steps = 3, .resume = newest_checkpoint(folder_)});
      ASSERT_EQ(continued.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(continued[i], uninterrupted[3 + i], 1e-12 * std::abs(uninterrupted[3 + i]))
            << name << ", " << testing::name_of(spec) << ", step " << 3 + i;
    }
  }
};

// Tied weights on two ranks.
TEST_F(Continued, UnderOtherPlansHasTheSameLossesWithSgd) {
  expect_equal("tiny_gpt", Optimizer::Sgd);
}
TEST_F(Continued, UnderOtherPlansHasTheSameLossesWithMomentum) {
  expect_equal("tiny_gpt", Optimizer::Momentum);
}
TEST_F(Continued, UnderOtherPlansHasTheSameLossesWithAdam) {
  expect_equal("tiny_gpt", Optimizer::Adam);
}
// Running statistics, dropout.
TEST_F(Continued, UnderOtherPlansHasTheSameLossesWithAdamW) {
  expect_equal("tiny_convnet", Optimizer::AdamW);
}

TEST_F(Folder, OnlyTheLastCompleteCheckpointStaysAndPartialOnesNeverCount) {
  const testing::Model model("tiny_mlp");
  const RankOptions options = options_of(Optimizer::Adam);
  std::filesystem::create_directories(folder_ / ".partial-step-00000009");
  std::filesystem::create_directories(folder_ / "step-00000099");  // no checkpoint.json
  EXPECT_THROW(newest_checkpoint(folder_), ConfigError);
  train_on_threads(model, kTwoRanks, options, {.steps = 5, .save = folder_, .save_every = 2});
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000005"});
  // Again the same name: from the beginning, to the same step.
  train_on_threads(model, kTwoRanks, options, {.steps = 5, .save = folder_});
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000005"});
  EXPECT_EQ(read_checkpoint_info(folder_ / "step-00000005/checkpoint.json").steps, 5);
}

TEST_F(Folder, ACheckpointHoldsEveryParameterOnceUnderItsOwnName) {
  const testing::Model model("tiny_gpt");
  train_on_threads(model, kTwoRanks, options_of(Optimizer::Adam), {.steps = 1, .save = folder_});
  const std::filesystem::path checkpoint = newest_checkpoint(folder_);
  const CheckpointInfo info = read_checkpoint_info(checkpoint / "checkpoint.json");
  std::map<std::string, int> seen;
  for (const std::string& name : info.model) {
    const SafetensorsFile file(checkpoint / name);
    for (const auto& entry : file.header().entries) ++seen[entry.name];
  }
  for (const Parameter& parameter : model.graph.parameters) {
    EXPECT_EQ(seen[parameter.names.front()], 1) << parameter.names.front();
    for (std::size_t i = 1; i < parameter.names.size(); ++i)
      EXPECT_FALSE(seen.contains(parameter.names[i]));
  }
}

TEST_F(Folder, ACheckpointThatWasCutOffIsRefusedByName) {
  const testing::Model model("tiny_mlp");
  const RankOptions options = options_of(Optimizer::Sgd);
  train_on_threads(model, kTwoRanks, options, {.steps = 1, .save = folder_});
  const auto file = newest_checkpoint(folder_) / "model-00001-of-00002.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(damage(newest_checkpoint(folder_)), HasSubstr(file.filename().string()));
  try {
    train_on_threads(model, kTwoRanks, options, {.steps = 1, .resume = newest_checkpoint(folder_)});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("model-00001-of-00002.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr("cut off"));
  }
}

// The smallest file whole, of the others 200 bits each, all different.
TEST_F(Folder, NoBitOfACheckpointMayChange) {
  const testing::Model model("tiny_mlp");
  train_on_threads(model, kTwoRanks, options_of(Optimizer::Adam), {.steps = 1, .save = folder_});
  const std::filesystem::path checkpoint = newest_checkpoint(folder_);
  EXPECT_EQ(damage(checkpoint), "");
  std::mt19937_64 random(21);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    ++files;
    const std::uint64_t bits = 8 * entry.file_size();
    const bool whole = entry.path().filename() == "checkpoint.json";
    for (std::uint64_t i = 0; i < (whole ? bits : 200); ++i) {
      const std::uint64_t bit = whole ? i : random() % bits;
      flip_bit(entry.path(), bit);
      EXPECT_NE(damage(checkpoint), "") << entry.path() << " bit " << bit;
      flip_bit(entry.path(), bit);
    }
  }
  EXPECT_EQ(files, 6);
  EXPECT_EQ(damage(checkpoint), "");
}

// The state of one parameter is renamed within the file, and the file's digest is ignored.
TEST_F(Folder, AnIncompleteStateOfTheOptimizerIsRefusedByName) {
  const testing::Model model("tiny_mlp");
  const RankOptions options = options_of(Optimizer::Adam);
  train_on_threads(model, kTwoRanks, options, {.steps = 1, .save = folder_});
  const std::filesystem::path checkpoint = newest_checkpoint(folder_);
  replace_in(checkpoint / "optimizer-00001-of-00002.safetensors", "/exp_avg\"", "/exp_avh\"");
  EXPECT_THAT(message_of<std::exception>([&] {
                train_on_threads(model, kTwoRanks, options, {.steps = 1, .resume = checkpoint});
              }),
              HasSubstr("exp_avg', which the model has"));
  replace_in(checkpoint / "checkpoint.json", "\"optimizer-00001-of-00002.safetensors\",", "");
  EXPECT_THAT(damage(checkpoint), HasSubstr("damaged"));
}

class Data : public Folder {
 protected:
  Data() : model_("tiny_gpt"), pipeline_(model_.pipeline(kTwoRanks)) {}
  const Value& input(std::size_t i) const { return model_.graph.value(model_.graph.inputs[i]); }
  /// Input i with `samples` samples; element k of the file is k modulo 7.
  void write(std::size_t i, std::int64_t samples) const {
    std::vector<std::int64_t> sizes = input(i).type.sizes;
    sizes[0] = samples;
    std::vector<std::int64_t> values(static_cast<std::size_t>(c10::multiply_integers(sizes)));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<std::int64_t>(k % 7);
    write_npy(folder_ / (input(i).name + ".npy"), "<i8", sizes, values);
  }
  std::int64_t samples_per_step() const { return 4 * model_.graph.microbatch_size; }
  std::string refusal() const {
    try {
      TrainingData(folder_, pipeline_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  testing::Model model_;
  Pipeline pipeline_;
};

TEST_F(Data, StepsTakeTheSamplesInOrderAndTheLastMayBeSmaller) {
  const std::int64_t size = model_.graph.microbatch_size, step = 4 * size;
  for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) write(i, 2 * step + size + 1);
  const TrainingData data(folder_, pipeline_);
  EXPECT_EQ(data.after(0), step);
  if (model_.graph.symbolic_batch) {
    EXPECT_EQ(data.after(step), 2 * step);
    EXPECT_EQ(data.after(2 * step), 0);
    const StepInputs last = data.step(2, 2 * step, {}, {});
    EXPECT_EQ(last.samples, (std::vector<std::int64_t>{size, 1, 0, 0}));
    EXPECT_EQ(last.shares[1], 1.0 / static_cast<double>(size + 1));
  } else {
    EXPECT_EQ(data.after(step), 0);
  }
  const ValueId id = model_.graph.inputs[0];
  const StepInputs inputs = data.step(0, step, {id}, {});
  const at::Tensor third = inputs.microbatches.at(2).at(id);
  EXPECT_EQ(third.sizes(), at::IntArrayRef(input(0).type.sizes));
  const std::int64_t row = third.numel() / size, first = (step + 2 * size) * row;
  EXPECT_EQ(third.flatten()[0].item<std::int64_t>(), first % 7);
  EXPECT_EQ(third.flatten()[third.numel() - 1].item<std::int64_t>(),
            (first + third.numel() - 1) % 7);
}

TEST_F(Data, MistakesAreNamedWithTheFile) {
  const std::int64_t step = 4 * model_.graph.microbatch_size;
  const std::filesystem::path first = folder_ / (input(0).name + ".npy");
  EXPECT_THAT(refusal(), HasSubstr("is missing"));
  for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) write(i, step);
  EXPECT_EQ(refusal(), "accepted");
  write(0, step - 1);
  EXPECT_THAT(refusal(), HasSubstr("samples"));
  write_npy<float>(first, "<f4", {step, 3}, std::vector<float>(static_cast<std::size_t>(step * 3)));
  EXPECT_THAT(refusal(), HasSubstr("holds float32"));
  write_npy<std::int64_t>(first, "<i8", {step, 3},
                          std::vector<std::int64_t>(static_cast<std::size_t>(step * 3)));
  EXPECT_THAT(refusal(), HasSubstr("has the shape"));
  write_npy<std::int64_t>(first, "<i8", {step, 3}, {1});
  EXPECT_THAT(refusal(), HasSubstr("was cut off"));
  std::ofstream(first) << "no npy";
  EXPECT_THAT(refusal(), HasSubstr("no .npy file"));
}

TEST_F(Data, TrainingContinuesAtTheSampleWhereItStopped) {
  const std::int64_t size = model_.graph.microbatch_size;
  for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) write(i, 3 * 4 * size);
  const TrainingData data(folder_, pipeline_);
  const RankOptions options = options_of(Optimizer::Adam);
  const auto save = folder_ / "save";
  const auto whole = train_on_threads(model_, kTwoRanks, options, {.steps = 5, .data = &data});
  train_on_threads(model_, kTwoRanks, options, {.steps = 2, .data = &data, .save = save});
  const auto rest = train_on_threads(
      model_, kOthers[1], options, {.steps = 3, .data = &data, .resume = newest_checkpoint(save)});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(rest.at(i), whole.at(2 + i), 1e-12 * whole[2 + i]);
}

// torch.randperm(24, generator=g.manual_seed(seed + epoch)).tolist() in PyTorch 2.11, seed 7: the
// order of DistributedSampler(shuffle=True, seed=7) for one replica after set_epoch(epoch).
const std::vector<std::vector<std::int64_t>> kOrders{
    {15, 22, 3, 11, 7, 8, 23, 16, 20, 5, 9, 4, 10, 12, 2, 19, 18, 13, 21, 1, 17, 0, 6, 14},
    {3, 17, 19, 12, 21, 7, 22, 15, 16, 10, 8, 2, 13, 9, 4, 11, 18, 0, 20, 5, 14, 23, 1, 6}};

class Shuffled : public Data {
 protected:
  /// A folder with the samples of the named places among 24, whose elements are random.
  std::filesystem::path write_rows(const char* name, const std::vector<std::int64_t>& places) {
    const std::filesystem::path folder = folder_ / name;
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) {
      std::vector<std::int64_t> sizes = input(i).type.sizes;
      sizes[0] = 24;
      const auto row = static_cast<std::size_t>(c10::multiply_integers(sizes) / 24);
      std::mt19937_64 random(i);
      std::vector<std::int64_t> all(24 * row), values;
      for (std::int64_t& value : all) value = static_cast<std::int64_t>(random() % 61);
      for (const std::int64_t place : places) {
        const auto begin = all.begin() + place * static_cast<std::int64_t>(row);
        values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
      }
      sizes[0] = static_cast<std::int64_t>(places.size());
      write_npy(folder / (input(i).name + ".npy"), "<i8", sizes, values);
    }
    return folder;
  }
  void expect_near(const std::vector<double>& losses, std::span<const double> expected) {
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 1e-12 * expected[i]) << "step " << i;
  }
};

// Two epochs of three steps. The unsplit model takes both epochs' samples as they lie in a file
// that has them in torch's orders.
TEST_F(Shuffled, TwoRanksTrainOnTorchsPermutationOfEachEpochAndContinueInTheMiddleOfOne) {
  ASSERT_EQ(samples_per_step(), 8);
  std::vector<std::int64_t> in_order(24), both = kOrders[0];
  std::iota(in_order.begin(), in_order.end(), 0);
  both.insert(both.end(), kOrders[1].begin(), kOrders[1].end());
  const Pipeline unsplit = model_.pipeline(kOthers[0]);
  const TrainingData data(write_rows("in_order", in_order), pipeline_),
      permuted(write_rows("permuted", both), unsplit);
  RankOptions options = options_of(Optimizer::AdamW);
  options.optimizer.learning_rate = 0.02;
  options.optimizer.schedule = RateSchedule::Cosine;
  options.optimizer.warmup_steps = 2, options.optimizer.decay_steps = 6;
  const auto expected =
      train_on_threads(model_, kOthers[0], options, {.steps = 6, .data = &permuted});
  EXPECT_GT(std::abs(expected[1] - expected[0]), 1e-3);
  expect_near(
      train_on_threads(model_, kTwoRanks, options, {.steps = 6, .data = &data, .shuffle = true}),
      expected);
  for (const int before : {2, 3, 4}) {
    const auto save = folder_ / stream_all("save", before);
    train_on_threads(model_, kTwoRanks, options,
                     {.steps = before, .data = &data, .shuffle = true, .save = save});
    const CheckpointInfo info = read_checkpoint_info(newest_checkpoint(save) / "checkpoint.json");
    EXPECT_EQ(info.epoch, before / 3);
    EXPECT_EQ(info.next_sample, before % 3 * 8);
    EXPECT_EQ(info.optimizer, options.optimizer);
    expect_near(train_on_threads(model_, kOthers[1], options,
                                 {.steps = 6 - before,
                                  .data = &data,
                                  .shuffle = info.shuffle,
                                  .resume = newest_checkpoint(save)}),
                std::span(expected).subspan(static_cast<std::size_t>(before)));
  }
}

TEST_F(Data, OtherContentTypesOrShapesHaveAnotherDigest) {
  const std::int64_t step = 4 * model_.graph.microbatch_size;
  std::set<std::string> digests;
  for (const std::int64_t samples : {step, step + 1, 2 * step}) {
    for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) write(i, samples);
    digests.insert(TrainingData(folder_, pipeline_).digest());
  }
  const std::filesystem::path first = folder_ / (input(0).name + ".npy");
  flip_bit(first, 8 * (std::filesystem::file_size(first) - 8));
  digests.insert(TrainingData(folder_, pipeline_).digest());
  EXPECT_EQ(digests.size(), 4u);
  flip_bit(first, 8 * (std::filesystem::file_size(first) - 8));
  digests.insert(TrainingData(folder_, pipeline_).digest());
  EXPECT_EQ(digests.size(), 4u);
}

TEST_F(Data, TrainingOnOtherDataBeginsAtTheirFirstSample) {
  const std::int64_t step = 4 * model_.graph.microbatch_size;
  for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) write(i, 3 * step);
  const TrainingData long_data(folder_, pipeline_);
  const RankOptions options = options_of(Optimizer::Sgd);
  const auto save = folder_ / "save";
  train_on_threads(model_, kTwoRanks, options, {.steps = 2, .data = &long_data, .save = save});
  for (std::size_t i = 0; i < model_.graph.inputs.size(); ++i) {
    std::filesystem::remove(folder_ / (input(i).name + ".npy"));
    write(i, step);
  }
  const TrainingData data(folder_, pipeline_);
  const auto losses = train_on_threads(
      model_, kTwoRanks, options, {.steps = 1, .data = &data, .resume = newest_checkpoint(save)});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_TRUE(std::isfinite(losses[0]));
}

TEST_F(Folder, ALossThatIsNoNumberStopsTheTrainingAndSavesNothing) {
  const testing::Model model("tiny_mlp");
  RankOptions options = options_of(Optimizer::Sgd);
  options.placing.double_precision = false;
  options.optimizer.learning_rate = 1e38;
  EXPECT_THAT(message_of<std::exception>([&] {
                train_on_threads(model, kTwoRanks, options,
                                 {.steps = 50, .save = folder_, .save_every = 0});
              }),
              ::testing::ContainsRegex("the loss of step [0-9]+ is (nan|-?inf):"));
  EXPECT_THAT(names(), IsEmpty());
}

}  // namespace
}  // namespace pfeife
