#include "tests/schedules/random_agreement.h"

namespace pfeife::testing {
namespace {

TEST(RandomPrograms, EstimatorInterpreterAndJudgeAgreeOnTenThousandUnderEverySemantics) {
  expect_agreement(10000);
}

}  // namespace
}  // namespace pfeife::testing
