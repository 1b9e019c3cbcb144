// What is known of the error of predictions: counted by hand in the studies' files.
#include "experiments/show/known_errors.h"

#include <gtest/gtest.h>

#include "experiments/show/known_errors_data.h"

namespace pfeife {
namespace {

DeviceKind with_peak(double flops) {
  DeviceKind kind;
  kind.peak["fp16"] = FlopsPerSecond{flops};
  return kind;
}

// Llama 3, table 4 of arXiv 2407.21783: steps of 12.56, ... s, predicted 14.6 to 18.2 % too short.
TEST(KnownErrors, AreThoseOfTheDevicesOrOfAll) {
  const KnownError h100 = error_of_meshes(with_peak(990e12));
  EXPECT_EQ(h100.runs, 3U);
  EXPECT_NEAR(h100.shortest, 1 / (1 - 0.146) - 1, 0.001);
  EXPECT_NEAR(h100.longest, 1 / (1 - 0.182) - 1, 0.001);
  EXPECT_EQ(error_of_meshes(with_peak(312e12)).runs, 76U);
  EXPECT_EQ(error_of_meshes(with_peak(125e12)).runs, 79U);
  EXPECT_EQ(error_of_meshes(DeviceKind{}).runs, 79U);
}

TEST(KnownErrors, OfPipelinesIsOfWhatWasScoredWithoutCalibration) {
  const KnownError pipelines = error_of_pipelines();
  EXPECT_GT(pipelines.runs, 30U);
  EXPECT_LT(pipelines.shortest, 0);   // DeepSpeed's, table 1
  EXPECT_GT(pipelines.longest, 0.2);  // Pfeife's own runtime
}

TEST(KnownErrors, NothingIsSaidOfTimesThatWereGiven) {
  Request request;
  EXPECT_NE(error_of(request), "");
  request.model.format = ModelFormat::Table;
  EXPECT_EQ(error_of(request), "");
  request.model.format = ModelFormat::Pt2;
  request.calibration = {{.compute = 1.1}};
  EXPECT_EQ(error_of(request), "");
}

}  // namespace
}  // namespace pfeife
