// A plan whose stages lie on ranks of their own: asked for, written, read again, and under no
// bound.
#include <gmock/gmock.h>

#include "experiments/pfeife.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

class PlacementPlan : public ProgramTest {};

// Layers of 1, 3 and 2 ms on two devices, four microbatches: 1 + 2 and 3 are equal, and a rank with
// 9 ms a microbatch that begins after 1 ms ends after 37. By families some rank has 12 of 4: 48.
TEST_F(PlacementPlan, IsUnderNoBoundAndReadAgain) {
  write("layers.csv",
        "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
        "bytes,weight_saved_bytes,temporary_bytes\na,1,1,1,0,9,9,0,0\nb,3,3,3,0,9,9,0,0\n"
        "c,2,2,2,0,9,9,0,0\n");
  const Model model = load_model(folder_ / "layers.csv");
  const Cluster cluster = load_cluster(configs() / "clusters" / "laptop.yaml");
  Request request{.devices = 2,
                  .microbatches = 4,
                  .plan = {.iterations = 20},
                  .baselines = {},
                  .simulate = false};
  const Planned by_family = plan(model, cluster, request);
  EXPECT_GT(milliseconds(by_family.best().plan.estimate), 48);
  EXPECT_TRUE(by_family.best().plan.bound);
  request.plan.search_placement = true;
  const Planned placed = plan(model, cluster, request);
  const Plan& best = placed.best().plan;
  EXPECT_LT(milliseconds(best.estimate), 38);
  ASSERT_EQ(best.spec.rank_of_stage.size(), 3u);
  EXPECT_EQ(best.spec.rank_of_stage, best.placement.rank_of_stage);
  EXPECT_FALSE(best.bound) << "bounds are of the placements that families have";
  save(placed, folder_ / "saved");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "saved" / "certificate.txt")) << "of other plans";
  save(by_family, folder_ / "proven");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "proven" / "certificate.txt"));
  Request given{
      .plan = {.file = folder_ / "saved" / "plan.yaml"}, .baselines = {}, .simulate = false};
  const Planned again = plan(model, cluster, given);
  EXPECT_EQ(again.best().plan.schedule, best.schedule);
  EXPECT_EQ(again.best().plan.spec, best.spec);
  EXPECT_EQ(again.best().plan.estimate, best.estimate);
}

}  // namespace
}  // namespace pfeife
