#include "planner/ir/schedule/action_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

// 0 -> 1 -> 2 with a skip 0 -> 2 of which nothing comes back.
StageGraph three_stages() {
  return {3,
          {{StageId{0}, StageId{1}, true},
           {StageId{0}, StageId{2}, false},
           {StageId{1}, StageId{2}, true}},
          {}};
}

using Message = std::tuple<std::uint32_t, StageId, Direction>;

std::vector<Message> read_by(const Action& action) {
  const StageGraph graph = three_stages();
  std::vector<Message> found;
  for_each_message_read(action, graph, StageEdges(graph),
                        [&](auto... message) { found.emplace_back(message...); });
  return found;
}

std::vector<Message> made_by(const Action& action) {
  const StageGraph graph = three_stages();
  std::vector<Message> found;
  for_each_message_made(action, graph, StageEdges(graph),
                        [&](auto... message) { found.emplace_back(message...); });
  return found;
}

TEST(ActionInputs, ForwardReadsAlongEveryEdgeIntoItsStage) {
  EXPECT_THAT(read_by(forward(StageId{0}, MicrobatchId{5})), IsEmpty());
  EXPECT_THAT(read_by(forward(StageId{2}, MicrobatchId{5})),
              ElementsAre(FieldsAre(1U, StageId{0}, Direction::Forward),
                          FieldsAre(2U, StageId{1}, Direction::Forward)));
}

TEST(ActionInputs, BackwardReadsGradientsOfTheEdgesThatHaveThem) {
  for (const auto make : {backward, backward_input}) {
    EXPECT_THAT(read_by(make(StageId{0}, MicrobatchId{5})),
                ElementsAre(FieldsAre(0U, StageId{1}, Direction::Backward)));
    EXPECT_THAT(made_by(make(StageId{2}, MicrobatchId{5})),
                ElementsAre(FieldsAre(2U, StageId{1}, Direction::Backward)));
  }
}

TEST(ActionInputs, WeightGradientsReadAndMakeNoMessage) {
  EXPECT_THAT(read_by(backward_weight(StageId{1}, MicrobatchId{5})), IsEmpty());
  EXPECT_THAT(made_by(backward_weight(StageId{1}, MicrobatchId{5})), IsEmpty());
}

TEST(ActionInputs, WhatOneActionMakesAnotherReads) {
  for (const auto make : {forward, backward})
    for (int stage = 0; stage < 3; ++stage)
      for (const auto& [edge, reader, direction] : made_by(make(StageId{stage}, MicrobatchId{5})))
        EXPECT_THAT(read_by(make(reader, MicrobatchId{5})),
                    ::testing::Contains(FieldsAre(edge, StageId{stage}, direction)));
}

}  // namespace
}  // namespace pfeife
