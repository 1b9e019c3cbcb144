// Forward only: rows of F alone on ranks, and `pfeife-run evaluate` as a user gives it.
#include <gmock/gmock.h>

#include "tests/runtime/npy_file.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/same.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using namespace testing;

/// [microbatch] The losses of the inputs, evaluated.
std::vector<double> evaluated(const Pipeline& pipeline, const Model& model,
                              const StepInputs& inputs) {
  std::vector<double> losses;
  RankOptions options;
  options.update = false;
  run_with(pipeline, model.source, options, [&](RankPipeline& own) {
    own.evaluate(inputs);
    if (const auto made = own.evaluation_losses(); !made.empty()) losses = made;
    return std::vector<TaskRecord>{};
  });
  return losses;
}

std::vector<ScheduleSpec> forward_points() {
  return {{"forward", 3, 4, 1, {}, {}},
          {"forward", 2, 4, 2, {}, {}},
          {"forward", 2, 4, 3, 4, {}},
          {"forward", 2, 4, 2, 1, {}}};
}

TEST(Evaluate, RowsOfFAloneGiveTheLossesOfTheUnsplitModel) {
  for (const std::string& name : tiny_models()) {
    const Model model(name);
    const Pipeline whole = model.unsplit(4);
    const StepInputs inputs = inputs_of(whole, 3, RankOptions{}.placing);
    const std::vector<double> expected = evaluated(whole, model, inputs);
    ASSERT_EQ(expected.size(), 4u);
    for (const ScheduleSpec& spec : forward_points()) {
      const std::vector<double> losses = evaluated(model.pipeline(spec), model, inputs);
      ASSERT_EQ(losses.size(), 4u) << name_of(spec);
      for (std::size_t m = 0; m < 4; ++m)
        EXPECT_NEAR(losses[m], expected[m], 1e-12) << name_of(spec);
    }
  }
}

TEST(Evaluate, MoreMicrobatchesThanARowHasBeginItAgain) {
  const Model model("tiny_gpt");
  const StepInputs inputs = inputs_of(model.unsplit(7), 3, RankOptions{}.placing);
  const std::vector<double> expected = evaluated(model.unsplit(7), model, inputs);
  for (const ScheduleSpec& spec : forward_points()) {
    const std::vector<double> losses = evaluated(model.pipeline(spec), model, inputs);
    ASSERT_EQ(losses.size(), 7u);
    for (std::size_t m = 0; m < 7; ++m) EXPECT_NEAR(losses[m], expected[m], 1e-12);
  }
}

TEST(Evaluate, RowsOfFAloneAreRefusedWhereTheModelIsTrained) {
  const Model model("tiny_gpt");
  const ScheduleSpec spec = forward_points().front();
  const Placement placement = placement_for(spec);
  EXPECT_THAT(message_of<std::exception>([&] {
                make_pipeline(model.graph, model.even_cuts(3), generate(spec), placement);
              }),
              HasSubstr("rows of F alone are for training.mode: forward"));
}

class EvaluateVerb : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    std::ofstream(folder_ / "forward.csv")
        << write_schedule(generate({"forward", 3, 4, 1, {}, {}}));
    std::filesystem::create_directories(folder_ / "data");
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(kSamples * 12));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::int64_t>(i * 7 % 13);
    for (const char* input : {"ids", "labels"})
      write_npy<std::int64_t>(folder_ / "data" / (std::string(input) + ".npy"), "<i8",
                              {kSamples, 12}, tokens);
  }
  Ended run_pfeife(const std::vector<std::string>& rest, bool forward) const {
    std::vector<std::string> all = arguments(rest);
    for (std::string& argument : all)
      if (forward && argument == (folder_ / "s.csv").string())
        argument = (folder_ / "forward.csv").string();
    return start(all)->wait(kLong);
  }
  static constexpr std::int64_t kSamples = 21;  // no whole number of steps
};

TEST_F(EvaluateVerb, EverySampleCountsOnceByAnyPlan) {
  const std::vector<std::string> rest{"evaluate", "--threads", "--data",
                                      (folder_ / "data").string()};
  const Ended forward = run_pfeife(rest, true), trained = run_pfeife(rest, false);
  EXPECT_EQ(forward.code, 0) << forward.text;
  EXPECT_THAT(forward.text, HasSubstr("21 samples in "));
  const auto loss = [](const std::string& text) {
    const std::size_t at = text.find("loss ");
    return at == std::string::npos ? "" : text.substr(at, text.find(',', at) - at);
  };
  EXPECT_NE(loss(forward.text), "");
  EXPECT_EQ(loss(forward.text), loss(trained.text)) << "a plan of training steps evaluates, too";
}

TEST_F(EvaluateVerb, VerbsThatTrainRefuseRowsOfFAlone) {
  for (const char* verb : {"train", "check"}) {
    const Ended refused = run_pfeife({verb, "--threads"}, true);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.text, HasSubstr("pfeife-run evaluate"));
  }
  const Ended without = run_pfeife({"evaluate", "--threads"}, true);
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.text, HasSubstr("--data"));
}

}  // namespace
}  // namespace pfeife
