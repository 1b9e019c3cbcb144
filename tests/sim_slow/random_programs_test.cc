#include "tests/sim/random_simulation.h"

namespace pfeife::testing {
namespace {

class RandomProgramsSimulated : public SimulatorTest {};

TEST_F(RandomProgramsSimulated, AsTheInterpreterSaysOnTenThousand) {
  expect_simulated_as_interpreted(10000);
}

}  // namespace
}  // namespace pfeife::testing
