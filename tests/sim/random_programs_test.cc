#include "tests/sim/random_simulation.h"

namespace pfeife::testing {
namespace {

class RandomProgramsSimulated : public SimulatorTest {};

TEST_F(RandomProgramsSimulated, AsTheInterpreterSays) { expect_simulated_as_interpreted(100); }

}  // namespace
}  // namespace pfeife::testing
