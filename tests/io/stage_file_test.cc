#include "planner/io/plan/stage_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pfeife {
namespace {

TEST(StageFile, HasEveryFigureOfStagesValuesMessagesAndReductions) {
  StageCosts costs;
  costs.stages.resize(2);
  StageCost& first = costs.stages[0];
  first.forward = Nanoseconds(1), first.backward_input = Nanoseconds(2),
  first.backward_weight = Nanoseconds(3);
  first.optimizer = Nanoseconds(4);
  first.parameters = Bytes{5}, first.gradients = Bytes{6}, first.optimizer_state = Bytes{7};
  first.saved = Bytes{8}, first.weight_saved = Bytes{9};
  first.temporary = {Bytes{10}, Bytes{11}, Bytes{12}, Bytes{13}};
  first.recomputed = Bytes{14}, first.forward_again = Bytes{21};
  costs.values.push_back({StageId{0}, {StageId{1}}, Bytes{15}, Bytes{16}, true, {false}});
  costs.pairs.push_back(
      {StageId{0}, StageId{1}, Bytes{15}, Bytes{16}, Nanoseconds(17), Nanoseconds(18)});
  costs.reductions.push_back({{StageId{0}, StageId{1}}, Bytes{19}, Nanoseconds(20)});
  EXPECT_EQ(stages_text(costs, round_robin(2, 2)),
            "stage,rank,forward_ns,backward_input_ns,backward_weight_ns,optimizer_ns,"
            "parameter_bytes,gradient_bytes,optimizer_state_bytes,saved_bytes,weight_saved_bytes,"
            "temporary_forward_bytes,temporary_backward_bytes,temporary_input_bytes,"
            "temporary_weight_bytes,recomputed_bytes,forward_again_bytes\n"
            "0,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,21\n"
            "1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n"
            "\n"
            "value,from,to,bytes,gradient_bytes,saved_by_sender,saved_by_receiver\n"
            "0,0,1,15,16,1,0\n"
            "\n"
            "from,to,message_bytes,gradient_bytes,forward_ns,backward_ns\n"
            "0,1,15,16,17,18\n"
            "\n"
            "reduced_stages,reduced_bytes,reduction_ns\n"
            "0 1,19,20\n");
}

// Stage 1 sends an empty gradient to stage 0, and stage 2 sends none: bytes do not say which.
TEST(StageFile, SaysWhetherAnEmptyGradientComesBack) {
  StageCosts costs;
  costs.pairs.push_back(
      {StageId{0}, StageId{1}, Bytes{0}, Bytes{0}, Nanoseconds(1), Nanoseconds(2)});
  costs.pairs.push_back(
      {StageId{1}, StageId{2}, Bytes{0}, Bytes{0}, Nanoseconds(3), Nanoseconds(0), false});
  EXPECT_THAT(stages_text(costs, round_robin(3, 3)),
              testing::HasSubstr("\nfrom,to,message_bytes,gradient_bytes,forward_ns,backward_ns,"
                                 "has_gradient\n0,1,0,0,1,2,1\n1,2,0,0,3,0,0\n"));
}

// Copies to the host, collectives that a pair of actions hides, and slices: figures that peak
// memory and step time follow from, too.
TEST(StageFile, HasWhatOffloadsOverlapsAndSlicesAdd) {
  StageCosts costs;
  costs.stages.resize(1);
  StageCost& stage = costs.stages[0];
  stage.forward_collectives = Nanoseconds(1), stage.backward_collectives = Nanoseconds(2);
  stage.offloaded = Bytes{3}, stage.offload = Nanoseconds(4), stage.reload = Nanoseconds(5);
  stage.unkept_forward = Bytes{6};
  costs.one_copy_engine = true, costs.overlap_factor = 1.25;
  const std::string whole = stages_text(costs, round_robin(1, 1));
  EXPECT_THAT(whole, testing::HasSubstr(
                         "forward_again_bytes,forward_collectives_ns,backward_collectives_ns,"
                         "offloaded_bytes,offload_ns,reload_ns,unkept_forward_bytes\n"
                         "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,2,3,4,5,6\n"));
  EXPECT_THAT(whole, testing::HasSubstr("\none_copy_engine\n1\n\noverlap_factor\n1.25\n"));
  costs.side_by_side = {{StageId{0}, StageId{0}, Nanoseconds(9), Nanoseconds(8)}};
  EXPECT_THAT(stages_text(costs, round_robin(1, 1)),
              testing::HasSubstr("1.25\n\nforward_of,backward_of,with_backward_ns,with_input_ns\n"
                                 "0,0,9,8\n"));
  StageCosts sliced;
  sliced.stages.resize(1);
  StageCosts::Slice& slice = sliced.slices.emplace_back();
  slice.stages.resize(1);
  slice.stages[0].forward = Nanoseconds(7);
  slice.key_gradients = {Bytes{8}};
  EXPECT_THAT(stages_text(sliced, round_robin(1, 1)),
              testing::HasSubstr("\nslice\n0\n\nstage,rank,forward_ns"));
  EXPECT_THAT(stages_text(sliced, round_robin(1, 1)),
              testing::HasSubstr("forward_again_bytes,key_gradient_bytes\n"
                                 "0,0,7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,8\n"));
}

}  // namespace
}  // namespace pfeife
