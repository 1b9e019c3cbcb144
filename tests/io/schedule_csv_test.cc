#include "planner/io/plan/schedule_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

std::string error_of_csv(const std::string& text, Dialect dialect = Dialect::Current) {
  return pfeife::message_of([&] { read_schedule(text, "my.csv", dialect); });
}

TEST(ScheduleCsv, WrittenAsRead) {
  const std::string text = "0F0,,(0F1;0B0)OVERLAP_F_B,0SKIP_SEND_F1>2,0OPTIMIZER_STEP\n,1F0,\n";
  EXPECT_EQ(write_schedule(read_schedule(text, "a.csv")), text);
}

TEST(ScheduleCsv, BothLineEndsAndAMissingLastOne) {
  EXPECT_EQ(read_schedule("0F0,0B0\r\n1F0\r\n", "a"), read_schedule("0F0,0B0\n1F0", "a"));
}

TEST(ScheduleCsv, BlankCellsAreIdle) {
  EXPECT_EQ(read_schedule("0F0,   ,0B0\n", "a"), read_schedule("0F0,,0B0\n", "a"));
}

// As torch 2.11 reads it: Python's csv module takes quotes away, _Action.from_str strips.
TEST(ScheduleCsv, BlanksAndQuotesAroundCellsAndBlankLinesAtTheEndAreReadAsTorchDoes) {
  const Schedule plain = read_schedule("0F0,0F1,0B0,0B1\n", "a");
  EXPECT_EQ(read_schedule("0F0 , 0F1,\t0B0,0B1 \n", "a"), plain);
  EXPECT_EQ(read_schedule("\"0F0\",\"0F1\",\"0B0\",\"0B1\"\n", "a"), plain);
  EXPECT_EQ(read_schedule("0F0,0F1,0B0,0B1\n\n  \r\n", "a"), plain);
}

TEST(ScheduleCsv, WrongCellsAreNamedByRowAndColumn) {
  EXPECT_MESSAGE(error_of_csv("0F0,0B0\n1F0,1X0\n"));
  EXPECT_MESSAGE(error_of_csv("rank0,rank1\n0F0\n"));
  EXPECT_MESSAGE(error_of_csv("0F0\n\n1F0\n"));
  EXPECT_MESSAGE(error_of_csv(""));
  EXPECT_MESSAGE(error_of_csv("0F0, 0 B0\n"));
  EXPECT_MESSAGE(error_of_csv("0BW0\n"));
}

TEST(ScheduleCsv, OldDialectIsReadIntoTodaysLetters) {
  EXPECT_EQ(write_schedule(read_schedule("0B0,0W0,0BW1\n", "a", Dialect::Old)), "0I0,0W0,0B1\n");
}

TEST(ScheduleCsv, ForTorchOptimizerStepsAreLeftOutAndSkipsRefused) {
  EXPECT_EQ(write_schedule(read_schedule("0F0,0OPTIMIZER_STEP,0SEND_F0,3SEND_F0,3SEND_B0\n", "a"),
                           Reader::Torch),
            "0F0,0SEND_F0,3SEND_F0,3SEND_B0\n");
  // torch divides gradients by the number of microbatches at REDUCE_GRAD and nowhere else.
  EXPECT_EQ(
      write_schedule(read_schedule("0F0,0B0,2F0,2I0,2W0,0OPTIMIZER_STEP\n", "a"), Reader::Torch),
      "0F0,0B0,2F0,2I0,2W0,0REDUCE_GRAD,2REDUCE_GRAD\n");
  EXPECT_EQ(write_schedule(read_schedule("0F0,0B0,0REDUCE_GRAD\n", "a"), Reader::Torch),
            "0F0,0B0,0REDUCE_GRAD\n");
  try {
    write_schedule(read_schedule("0F0\n1F0,1SKIP_SEND_F0>3\n", "a"), Reader::Torch);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_MESSAGE(error.what());
  }
}

}  // namespace
}  // namespace pfeife
