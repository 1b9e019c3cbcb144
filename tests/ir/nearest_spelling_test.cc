#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

TEST(NearestSpelling, IsAtMostAThirdOfTheLettersAway) {
  EXPECT_EQ(nearest_spelling("tf23", {"fp32", "tf32"}), "tf32");
  EXPECT_EQ(nearest_spelling("FP32", {"fp32", "tf32"}), "fp32");
  EXPECT_EQ(nearest_spelling("blue", {"fp32", "tf32"}), "");
}

TEST(NearestSpelling, OrALongerFormOfTheWord) {
  EXPECT_EQ(nearest_spelling("bf16", {"fp32", "tf32", "bf16_amp", "fp16_amp"}), "bf16_amp");
  EXPECT_EQ(nearest_spelling("family", {"search", "families", "cuts"}), "families");
  EXPECT_EQ(nearest_spelling("b", {"bf16_amp"}), "");
}

TEST(NearestSpelling, IsNeverTheWordItself) {
  EXPECT_EQ(nearest_spelling("step_below", {"step_below", "training"}), "");
}

}  // namespace
}  // namespace pfeife
