// A mesh for the programs that run it: degrees of parallelism in their words. Which options of a
// program are good for a mesh is not known here.
#pragma once

#include <string>

#include "planner/ir/machine/mesh_run.h"

namespace pfeife {

/// A fragment of a torchtitan configuration (TOML: [parallelism], [training],
/// [activation_checkpoint]), by the names of torchtitan 0.2. What torchtitan has no word for stands
/// in a comment.
std::string torchtitan_toml(const MeshRun& run);

/// Flags of Megatron-LM's pretrain_gpt.py, one a line, ready for a shell.
std::string megatron_flags(const MeshRun& run);

}  // namespace pfeife
