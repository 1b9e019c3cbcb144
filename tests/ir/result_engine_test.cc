#include "planner/ir/result/result_engine.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

ResultRow row(bool estimate, bool simulate, bool measure) {
  ResultRow row;
  if (estimate) row.estimate = Nanoseconds{1};
  if (simulate) row.simulate = Nanoseconds{1};
  if (measure) row.measure = Nanoseconds{1};
  return row;
}

TEST(ResultEngine, IsTheOneClosestToRealDevices) {
  EXPECT_EQ(engine_of(row(true, false, false)), TraceSource::Estimated);
  EXPECT_EQ(engine_of(row(true, true, false)), TraceSource::Simulated);
  EXPECT_EQ(engine_of(row(true, true, true)), TraceSource::Measured);
  EXPECT_EQ(engine_of(row(true, false, true)), TraceSource::Measured);
}

TEST(ResultEngine, AHeadingNamesItOnlyIfItIsThatOfEveryRowWithATime) {
  const ResultRow impossible, estimated = row(true, false, false),
                              simulated = row(true, true, false);
  EXPECT_EQ(engine_text({impossible, simulated, simulated}), "simulated");
  EXPECT_EQ(engine_text({simulated, impossible, estimated}), "best engine");
  EXPECT_EQ(engine_text({impossible}), "estimated");
}

}  // namespace
}  // namespace pfeife
