// One program a reader for libFuzzer: fuzz_NAME [CORPUS FOLDER] [-max_total_time=60].
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

const pfeife::FuzzTarget& target_named(const std::string& name) {
  for (const pfeife::FuzzTarget& target : pfeife::fuzz_targets())
    if (target.name == name) return target;
  __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const pfeife::FuzzTarget& target = target_named(PFEIFE_FUZZ_TARGET);
  static const std::filesystem::path folder = [] {
    std::string name = "/tmp/fuzz_readers_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) __builtin_trap();
    return std::filesystem::path(name);
  }();
  pfeife::fuzz_one(target, {reinterpret_cast<const char*>(data), size}, folder);
  return 0;
}
