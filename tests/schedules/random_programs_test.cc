#include "tests/schedules/random_agreement.h"

namespace pfeife::testing {
namespace {

TEST(RandomPrograms, EstimatorInterpreterAndJudgeAgreeUnderEverySemantics) {
  expect_agreement(1000);
}

TEST(RandomPrograms, TheyAgreeOnProgramsWithCopies) { expect_agreement(300, true); }

}  // namespace
}  // namespace pfeife::testing
