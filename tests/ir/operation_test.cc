// The table of operations against what a microbatch's life says: whatever is kept is let go, and a
// full backward is its two halves.
#include "planner/ir/schedule/operation.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>

namespace pfeife {
namespace {

struct Sum {
  int saved = 0, weight_saved = 0;
  unsigned times = 0;
  bool weight_gradient = false, input_gradient = false;
};
Sum sum(std::initializer_list<Op> ops) {
  Sum all;
  for (const Op op : ops) {
    const Operation& kind = operation(op);
    all.saved += kind.saved, all.weight_saved += kind.weight_saved;
    EXPECT_EQ(all.times & kind.times, 0u) << "a part of a stage's time is spent twice";
    all.times |= kind.times;
    all.weight_gradient |= kind.weight_gradient;
    all.input_gradient |= makes_input_gradient(op);
  }
  return all;
}

TEST(Operations, AMicrobatchKeepsNothingAfterItsBackward) {
  for (const Sum& life : {sum({Op::Forward, Op::Backward}),
                          sum({Op::Forward, Op::BackwardInput, Op::BackwardWeight})}) {
    EXPECT_EQ(life.saved, 0);
    EXPECT_EQ(life.weight_saved, 0);
    EXPECT_TRUE(life.weight_gradient && life.input_gradient);
  }
}

// S and T make nothing that B reads on their own stage: their collectives do.
TEST(Operations, SharesOfTheOutputLayerComputeKeepNoActivationsAndEachTakesATimeOfItsOwn) {
  const Sum both = sum({Op::HeadShare, Op::HeadRest});
  EXPECT_EQ(both.saved, 0);
  EXPECT_EQ(both.weight_saved, 0);
  EXPECT_TRUE(both.weight_gradient);
  EXPECT_FALSE(both.input_gradient);
  for (const Operation& known : kOperations) {
    EXPECT_EQ(is_head(known.op), known.op == Op::HeadShare || known.op == Op::HeadRest);
    EXPECT_TRUE(!is_head(known.op) || is_compute(known.op));
    EXPECT_TRUE(!is_head_collective(known.op) || known.task == TaskKind::Reduction);
  }
}

TEST(Operations, BIsIAndW) {
  const Sum whole = sum({Op::Backward}), halves = sum({Op::BackwardInput, Op::BackwardWeight});
  EXPECT_EQ(whole.saved, halves.saved);
  EXPECT_EQ(whole.weight_saved, halves.weight_saved);
  EXPECT_EQ(whole.times, halves.times);
}

TEST(Operations, OfItsOwnStageBAndIReadFAndWReadsIAndTheHostWhatWasSaved) {
  EXPECT_EQ(operation(Op::Forward).reads, std::nullopt);
  EXPECT_EQ(operation(Op::Backward).reads, Op::Forward);
  EXPECT_EQ(operation(Op::BackwardInput).reads, Op::Forward);
  EXPECT_EQ(operation(Op::BackwardWeight).reads, Op::BackwardInput);
  EXPECT_EQ(operation(Op::OptimizerStep).reads, std::nullopt);
  EXPECT_EQ(operation(Op::Offload).reads, Op::Forward);
  EXPECT_EQ(operation(Op::Reload).reads, Op::Offload);
}

TEST(Operations, EachHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const Operation& known : kOperations) EXPECT_TRUE(words.insert(known.text).second);
}

}  // namespace
}  // namespace pfeife
