// Text form of actions: what is written is read back, and everything else is refused with its
// reason.
#include "planner/ir/schedule/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

Cell read(std::string_view text, Dialect dialect = Dialect::Current) {
  const ParsedCell parsed = parse_cell(text, dialect);
  EXPECT_EQ(parsed.error, "") << text;
  return parsed.cell.value_or(Cell{});
}
std::string refusal(std::string_view text, Dialect dialect = Dialect::Current) {
  const ParsedCell parsed = parse_cell(text, dialect);
  EXPECT_FALSE(parsed.cell.has_value()) << text;
  return parsed.error;
}

TEST(ActionText, EveryKindIsWrittenAsItIsRead) {
  for (const char* text : {"",
                           "2F0",
                           "2B0",
                           "2I0",
                           "2W0",
                           "2SEND_F10",
                           "2RECV_F0",
                           "2SEND_B0",
                           "2RECV_B0",
                           "0SKIP_SEND_F0>3",
                           "3SKIP_RECV_F0<0",
                           "3SKIP_SEND_B7>0",
                           "0SKIP_RECV_B7<3",
                           "3OFFLOAD2",
                           "3RELOAD2",
                           "3S12",
                           "0T0",
                           "0REDUCE_S1",
                           "2UNSHARD",
                           "2RESHARD",
                           "2REDUCE_GRAD",
                           "0OPTIMIZER_STEP",
                           "(4F4;3B0)OVERLAP_F_B",
                           "(4F4;3I0;1W2)OVERLAP_F_B",
                           "999999F999999"})
    EXPECT_EQ(to_string(read(text)), text);
}

TEST(ActionText, FieldsMeanWhatTheyShow) {
  EXPECT_EQ(read("2SEND_B5"),
            Cell{send(StageId{2}, StageId{1}, MicrobatchId{5}, Direction::Backward)});
  EXPECT_EQ(read("2RECV_B5"),
            Cell{recv(StageId{2}, StageId{3}, MicrobatchId{5}, Direction::Backward)});
  EXPECT_EQ(read("3SKIP_RECV_F0<0"),
            Cell{recv(StageId{3}, StageId{0}, MicrobatchId{0}, Direction::Forward)});
  EXPECT_EQ(read("1RESHARD"), Cell{stage_action(Op::Reshard, StageId{1})});
  EXPECT_EQ(read("(4F4;3B0)OVERLAP_F_B"), (Cell{Overlap{{forward(StageId{4}, MicrobatchId{4}),
                                                         backward(StageId{3}, MicrobatchId{0})}}}));
}

TEST(ActionText, OldDialectCalledTheInputGradientBAndTheFullBackwardBW) {
  EXPECT_EQ(read("2B0", Dialect::Old), Cell{backward_input(StageId{2}, MicrobatchId{0})});
  EXPECT_EQ(read("2BW0", Dialect::Old), Cell{backward(StageId{2}, MicrobatchId{0})});
  EXPECT_EQ(read("2W0", Dialect::Old), Cell{backward_weight(StageId{2}, MicrobatchId{0})});
  EXPECT_MESSAGE(refusal("2I0", Dialect::Old));
  EXPECT_MESSAGE(refusal("2BW0"));
}

TEST(ActionText, WrongTextIsRefusedWithTheReason) {
  EXPECT_MESSAGE(refusal("0X0"));
  EXPECT_MESSAGE(refusal("0f0"));
  EXPECT_MESSAGE(refusal("0SENDF0"));
  EXPECT_MESSAGE(refusal("0F"));
  EXPECT_MESSAGE(refusal("F0"));
  EXPECT_MESSAGE(refusal("0"));
  EXPECT_MESSAGE(refusal("0F1junk"));
  EXPECT_MESSAGE(refusal(" 0F1"));
  EXPECT_MESSAGE(refusal("0F1 "));
  EXPECT_MESSAGE(refusal("0F01"));
  EXPECT_MESSAGE(refusal("0F9999999"));
  EXPECT_MESSAGE(refusal("0UNSHARD0"));
  EXPECT_MESSAGE(refusal("0RECV_F0"));
  EXPECT_MESSAGE(refusal("0SKIP_SEND_F0"));
  EXPECT_MESSAGE(refusal("0SKIP_SEND_F0>1"));
  EXPECT_MESSAGE(refusal("3SKIP_SEND_F0>1"));
  EXPECT_MESSAGE(refusal("(0F0)OVERLAP_F_B"));
  EXPECT_MESSAGE(refusal("(0F0;1SEND_B0)OVERLAP_F_B"));
  EXPECT_MESSAGE(refusal("(0F0;1B0)"));
  EXPECT_MESSAGE(refusal("(0F0;)OVERLAP_F_B"));
  EXPECT_MESSAGE(refusal(std::string("0F\x01") + "0"));
}

}  // namespace
}  // namespace pfeife
