// What the two studies of published runs share: the command line, and the runs.
#pragma once

#include <functional>

#include "experiments/studies/published_runs/runs.h"

namespace pfeife::published {

/// The main of a study: `NAME REPOSITORY OUT`. Reads the runs of the repository and hands them on
/// with the folder to write into, which exists. Returns the exit code.
int run_study(
    const char* name, int argc, char** argv,
    const std::function<void(const std::vector<Source>&, const std::filesystem::path&)>& study);

/// "12.3".
std::string gib(Bytes bytes, int decimals);

}  // namespace pfeife::published
