// Reads the graph of a model exported by PyTorch (`torch.export.save`, `.pt2`), with or without
// weights.
//
// Only the graph is read, never tensor contents. The batch size, if the export left it open, is
// bound here: everything behind this door sees a static graph. Tied parameters are one. Not read:
// subgraphs (torch.cond), custom objects, sparse tensors, sizes other than multiples of the batch
// size.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// The graph of the archive at `path` for microbatches of `microbatch_size` samples (default: the
/// export's own). Its name is the file's stem, its digest the SHA-256 of the file. ConfigError,
/// naming file, node and remedy, for archives that are damaged, of another version, or hold what is
/// not understood.
Graph read_pt2(const std::filesystem::path& path, std::optional<std::int64_t> microbatch_size = {});

/// The same for an archive in memory; `name` stands for the file's path.
Graph read_pt2_bytes(std::string_view bytes, const std::string& name,
                     std::optional<std::int64_t> microbatch_size = {});

}  // namespace pfeife
