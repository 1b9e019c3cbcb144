// In place of engine.cc and platform.cc where SimGrid is missing.
#include "planner/ir/error.h"
#include "sim/engine.h"

namespace pfeife {

class Engine::Implementation {};

bool simulator_available() { return false; }

Engine::Engine(const SimulationJob&) {
  throw RuntimeFault(
      "this program was built without the simulator: install SimGrid 3.32 (Debian: libsimgrid-dev) "
      "and build again");
}
Engine::~Engine() = default;

std::vector<std::int64_t> Engine::run(std::optional<std::uint64_t>) { return {}; }

}  // namespace pfeife
