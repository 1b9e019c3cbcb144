// What the two studies of published runs share: the command line, and the runs.
#pragma once

#include <functional>

#include "experiments/studies/published_runs/runs.h"

namespace pfeife::published {

/// The main of a study: `NAME REPOSITORY OUT`. Hands on the repository
/// and the folder to write into, which exists. Returns the exit code.
int run_study(
    const char* name, int argc, char** argv,
    const std::function<void(const std::filesystem::path&, const std::filesystem::path&)>& study);

/// The runs of both studies, of papers.
std::vector<Source> sources_of(const std::filesystem::path& root);

/// "12.3".
std::string gib(Bytes bytes, int decimals);

}  // namespace pfeife::published
