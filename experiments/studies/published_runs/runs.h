// The published runs as runs of a mesh, one source a function: what was run, and what was measured.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"

namespace pfeife::published {

struct PublishedRun {
  std::string source;  ///< "vtrain", "narayanan", "korthikanti", "llama3"
  std::string name;    ///< of the row
  MeshRun run;
  double measured = 0;  ///< seconds a step
};

struct Source {
  std::string name, title;
  Network network;
  std::vector<PublishedRun> runs;
};

/// Each from its file of `data`, with the cluster files of `configs`. ConfigError.
std::vector<Source> read_sources(const std::filesystem::path& data,
                                 const std::filesystem::path& configs);

}  // namespace pfeife::published
