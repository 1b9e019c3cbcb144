#include "tests/schedules/random_agreement.h"

namespace pfeife::testing {
namespace {

TEST(RandomPrograms, EstimatorInterpreterAndJudgeAgreeUnderEverySemantics) {
  expect_agreement(1000);
}

}  // namespace
}  // namespace pfeife::testing
