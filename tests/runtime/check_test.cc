// What `pfeife-run check` calls equal and what it calls different, where numbers have few bits.
#include "runtime/execute/check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Passes messages on; gradients between stages are off by a factor, and come late on rank 0.
class WrongGradients final : public Transport {
 public:
  WrongGradients(Transport& right, const DependencyGraph& tasks, double factor,
                 std::chrono::milliseconds late)
      : right_(right), tasks_(tasks), factor_(factor), late_(late) {}

  RankId rank() const override { return right_.rank(); }
  std::size_t ranks() const override { return right_.ranks(); }
  void send(RankId to, Tag tag, Tensors tensors) override {
    for (at::Tensor& tensor : tensors)
      if (factor_ != 1 && is_gradient(tag) && tensor.defined() && tensor.is_floating_point())
        tensor = tensor * factor_;
    right_.send(to, tag, std::move(tensors));
  }
  Message receive(RankId from, Tag tag) override {
    if (right_.rank() == RankId{0} && is_gradient(tag)) std::this_thread::sleep_for(late_);
    return right_.receive(from, tag);
  }
  void stop(const RankFault& fault) override { right_.stop(fault); }

 private:
  bool is_gradient(Tag tag) const {
    if (tag.task >= tasks_.size()) return false;
    const auto* action = std::get_if<Action>(&tasks_.tasks[tag.task].cell);
    return action != nullptr && action->op == Op::Send && action->direction == Direction::Backward;
  }

  Transport& right_;
  const DependencyGraph& tasks_;
  double factor_;
  std::chrono::milliseconds late_;
};

// tests/data/models/own_model.py says what is in it.
class Check : public ::testing::Test {
 protected:
  Check() { at::set_num_threads(1); }  // one a rank, as Model has it
  CheckReport report_of(const ScheduleSpec& spec, bool double_precision, double factor = 1,
                        std::optional<std::chrono::milliseconds> norm_waits = {}) {
    const Placement placement = placement_for(spec);
    std::vector<NodeId> cuts;
    for (std::size_t s = 1; s < placement.stages(); ++s)
      cuts.push_back(legal_.at(s * legal_.size() / placement.stages()));
    Pipeline pipeline = make_pipeline(graph_, cuts, generate(spec), placement);
    if (norm_waits) add_norm_reduction(pipeline);
    const RankOptions options{.placing = {.double_precision = double_precision}, .seed = 7};
    CheckReport report;
    run_ranks(spec.ranks, at::kCPU, [&](RankId rank, Transport& transport) {
      WrongGradients wrong(transport, pipeline.tasks, factor, norm_waits.value_or(0ms));
      const CheckReport found = check_pipeline(pipeline, rank, source_, options, {}, wrong);
      if (rank == RankId{0}) report = found;
    });
    return report;
  }

  std::filesystem::path file_ = source_folder() / "tests/data/models/mixed_types.pt2";
  Graph graph_ = read_pt2(file_);
  WeightSource source_{file_, 1};
  std::vector<NodeId> legal_ = legal_cuts(graph_, effects_of(graph_));
};

// Cuts within and between blocks of float32, bfloat16 and float64; a residual that all stages read.
TEST_F(Check, CallsAPipelineEqualWhoseParametersHaveFewBits) {
  double largest = 0;
  for (const std::size_t microbatches : {4, 16})
    for (const ScheduleSpec& spec : accepted_points({4}, {microbatches}, {1, 2})) {
      const CheckReport report = report_of(spec, false);
      EXPECT_TRUE(report.right()) << name_of(spec) << ": " << to_string(report);
      largest = std::max(largest, report.largest.value / report.largest.allowed);
    }
  std::cout << "largest difference: " << largest << " of what is allowed\n";
}

// Nothing is updated and so nothing clipped, but all optimizer steps follow the norm of all ranks.
TEST_F(Check, KeepsTheOrderOfRowsThatReduceANorm) {
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  const CheckReport report = report_of(spec, true, 1, 20ms);
  EXPECT_TRUE(report.right()) << to_string(report);
}

TEST_F(Check, HasDoublePrecisionForTypesOfFewBits) {
  for (const ScheduleSpec& spec : accepted_points({4}, {4}, {1, 2})) {
    const CheckReport report = report_of(spec, true);
    EXPECT_TRUE(report.right()) << name_of(spec) << ": " << to_string(report);
    EXPECT_EQ(report.largest.allowed, 1e-12);
  }
}

// 5 % in one message's gradients is more than rounding explains, also in bfloat16.
TEST_F(Check, CallsGradientsDifferentThatAreFivePercentOff) {
  for (const std::size_t microbatches : {4, 16})
    for (const ScheduleSpec& spec : accepted_points({4}, {microbatches}, {1, 2}))
      EXPECT_FALSE(report_of(spec, false, 1.05).right()) << name_of(spec);
}

// By hand: bfloat16 has 8 bits, float16 11; 16 microbatches are 4 steps of a random walk, and 4 are
// of the operators.
TEST(RoundingAllowed, GrowsWithTheTypesRoundoffAndTheMicrobatches) {
  EXPECT_EQ(rounding_allowed(at::kBFloat16, 16), 8.0 / 256);
  EXPECT_EQ(rounding_allowed(at::kHalf, 4), 6.0 / 2048);
  EXPECT_EQ(rounding_allowed(at::kFloat, 4), 1e-4);
  EXPECT_EQ(rounding_allowed(at::kComplexDouble, 4), 1e-12);
}

}  // namespace
}  // namespace pfeife
