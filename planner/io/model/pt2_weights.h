// Where the tensors of a `.pt2` archive lie: parameters, buffers and constants by name. Contents
// are read by whoever executes the graph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

/// A storage: one entry of the archive, shared by the tensors that view it.
struct Pt2Storage {
  std::string entry;
  std::uint64_t bytes = 0;  ///< 0 in a graph-only archive
  /// Where it lies in the file if it is stored as it is; packed entries need read_pt2_storage.
  std::optional<std::uint64_t> file_offset;
  friend bool operator==(const Pt2Storage&, const Pt2Storage&) = default;
};

struct Pt2Tensor {
  TensorType type;
  std::size_t storage = 0;  ///< index into Pt2Weights::storages
  friend bool operator==(const Pt2Tensor&, const Pt2Tensor&) = default;
};

struct Pt2Weights {
  std::vector<Pt2Storage> storages;
  std::map<std::string, Pt2Tensor> tensors;  ///< by the model's own name, tied names included

  /// The tensor's contents are in the archive. False in a graph-only one, and for unknown names.
  bool has(const std::string& name) const;
  friend bool operator==(const Pt2Weights&, const Pt2Weights&) = default;
};

/// Reads the two tables of the archive and the places of their entries. ConfigError if they are
/// damaged, pickled, or a tensor does not fit its storage.
Pt2Weights read_pt2_weights(const std::filesystem::path& path);

/// The content of a packed storage.
std::string read_pt2_storage(const std::filesystem::path& path, const Pt2Storage& storage);

}  // namespace pfeife
