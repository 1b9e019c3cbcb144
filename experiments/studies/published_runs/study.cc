#include "experiments/studies/published_runs/study.h"

#include <cstdio>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/run_main.h"

namespace pfeife::published {

int run_study(
    const char* name, int argc, char** argv,
    const std::function<void(const std::filesystem::path&, const std::filesystem::path&)>& study) {
  return run_main(name, [&] {
    if (argc != 3) {
      std::fprintf(stderr, "usage: %s REPOSITORY OUT\n", name);
      return 2;
    }
    const std::filesystem::path root = argv[1], out = argv[2];
    std::filesystem::create_directories(out);
    study(root, out);
    return 0;
  });
}

std::vector<Source> sources_of(const std::filesystem::path& root) {
  return read_sources(root / "experiments/studies/published_runs/data", root / "configs");
}

std::string gib(Bytes bytes, int decimals) {
  return fixed(static_cast<double>(bytes.value) / static_cast<double>(kGiB.value), decimals);
}

}  // namespace pfeife::published
