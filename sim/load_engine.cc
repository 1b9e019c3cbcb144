#include <dlfcn.h>

#include <filesystem>

#include "planner/ir/error.h"
#include "sim/engine.h"

namespace pfeife {
namespace {

/// Where the library is: beside the programs as they are installed (bin, lib/pfeife), else where it
/// was built.
std::filesystem::path engine_file() {
  const std::filesystem::path built = PFEIFE_ENGINE_FILE;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = program.parent_path().parent_path() / "lib" / "pfeife" / built.filename();
  return !error && std::filesystem::exists(installed, error) ? installed : built;
}

RunEngine* load() {
  if (!simulator_available())
    throw RuntimeFault(
        "this program was built without the simulator: install SimGrid 3.32 (Debian: "
        "libsimgrid-dev) and build again");
  const std::filesystem::path file = engine_file();
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: callbacks point into it
  void* run = library != nullptr ? dlsym(library, "pfeife_run_engine") : nullptr;
  if (run == nullptr)
    throw RuntimeFault("the simulator's engine cannot be loaded: " + std::string(dlerror()));
  return reinterpret_cast<RunEngine*>(run);
}

}  // namespace

bool simulator_available() { return PFEIFE_ENGINE_FILE[0] != '\0'; }

RunEngine* load_engine() {
  static RunEngine* const engine = load();
  return engine;
}

}  // namespace pfeife
