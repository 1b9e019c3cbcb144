#include "planner/ir/basics/ids.h"

#include <gtest/gtest.h>

#include <limits>

namespace pfeife {
namespace {

TEST(Ids, AreMadeOfAnyIntegerThat32BitsHold) {
  EXPECT_EQ(StageId{std::size_t{7}}.value, 7);
  EXPECT_EQ(StageId{std::int64_t{-1}}.value, -1);
  EXPECT_EQ(StageId{std::uint8_t{255}}.index(), 255U);
  EXPECT_EQ(StageId{2147483647L}.value, std::numeric_limits<std::int32_t>::max());
}

TEST(Ids, OfWhat32BitsDoNotHoldAreRefusedRatherThanCut) {
  EXPECT_THROW(StageId{2147483648L}, InternalError);
  EXPECT_THROW(StageId{std::numeric_limits<std::size_t>::max()}, InternalError);
  EXPECT_THROW(StageId{std::numeric_limits<std::int64_t>::min()}, InternalError);
}

}  // namespace
}  // namespace pfeife
