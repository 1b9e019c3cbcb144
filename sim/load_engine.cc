#include <dlfcn.h>

#include <filesystem>

#include "planner/ir/basics/error.h"
#include "sim/engine.h"

namespace pfeife {
namespace {

/// The library beside the programs as they are installed (bin, lib/pfeife), else where the program
/// that embeds this one was told to look when it was linked, else where it was built.
void* open_engine() {
  const std::filesystem::path built = PFEIFE_ENGINE_FILE;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = program.parent_path().parent_path() / "lib" / "pfeife" / built.filename();
  // They stay open: callbacks point into them.
  for (const std::filesystem::path& file : {installed, built.filename(), built})
    if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

RunEngine* load() {
  if (!simulator_available())
    throw RuntimeFault(
        "this program was built without the simulator: install SimGrid 3.32 (Debian: "
        "libsimgrid-dev) and build again");
  void* library = open_engine();
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
