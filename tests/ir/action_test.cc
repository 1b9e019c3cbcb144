// Text form of actions: what is written is read back, and everything else is refused with its
// reason.
#include "planner/ir/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pfeife {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_THAT(refusal("2I0", Dialect::Old), HasSubstr("unknown kind 'I'"));
  EXPECT_THAT(refusal("2BW0"), HasSubstr("--old-dialect"));
}

TEST(ActionText, WrongTextIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("0X0"), HasSubstr("unknown kind 'X'"));
  EXPECT_THAT(refusal("0f0"), HasSubstr("did you mean F?"));
  EXPECT_THAT(refusal("0SENDF0"), HasSubstr("did you mean SEND_F?"));
  EXPECT_THAT(refusal("0F"), HasSubstr("a microbatch number is missing"));
  EXPECT_THAT(refusal("F0"), HasSubstr("a stage number is missing"));
  EXPECT_THAT(refusal("0"), HasSubstr("the kind is missing"));
  EXPECT_THAT(refusal("0F1junk"), HasSubstr("'junk' follows the end"));
  EXPECT_THAT(refusal(" 0F1"), HasSubstr("a stage number is missing"));
  EXPECT_THAT(refusal("0F1 "), HasSubstr("' ' follows the end"));
  EXPECT_THAT(refusal("0F01"), HasSubstr("leading zero"));
  EXPECT_THAT(refusal("0F9999999"), HasSubstr("above 999999"));
  EXPECT_THAT(refusal("0UNSHARD0"), HasSubstr("follows the end"));
  EXPECT_THAT(refusal("0RECV_F0"), HasSubstr("no stage comes before stage 0"));
  EXPECT_THAT(refusal("0SKIP_SEND_F0"), HasSubstr("names its other stage after '>'"));
  EXPECT_THAT(refusal("0SKIP_SEND_F0>1"), HasSubstr("written SEND_F"));
  EXPECT_THAT(refusal("3SKIP_SEND_F0>1"), HasSubstr("wrong side"));
  EXPECT_THAT(refusal("(0F0)OVERLAP_F_B"), HasSubstr("two parts"));
  EXPECT_THAT(refusal("(0F0;1SEND_B0)OVERLAP_F_B"), HasSubstr("side by side"));
  EXPECT_THAT(refusal("(0F0;1B0)"), HasSubstr("OVERLAP_F_B"));
  EXPECT_THAT(refusal("(0F0;)OVERLAP_F_B"), HasSubstr("a stage number is missing"));
  EXPECT_THAT(refusal(std::string("0F\x01") + "0"), HasSubstr("'F?'"));
}

}  // namespace
}  // namespace pfeife
