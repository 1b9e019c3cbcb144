// Safetensors: the header of a file of named tensors, as Hugging Face specifies it.
//
// A file is the length of its header (8 bytes, little endian), the header (JSON), then the tensors'
// bytes, row-major, without gaps. https://github.com/huggingface/safetensors
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0;  ///< of its bytes, in the file
  std::uint64_t bytes = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in order of their bytes
  std::map<std::string, std::string> metadata;  ///< free text
  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// The bytes in front of the tensors, padded to a multiple of 8, for entries in the order in which
/// their bytes follow. Sets `begin` and `bytes` of the entries.
std::string safetensors_header(SafetensorsHeader& header);

/// Reads the header of a file. ConfigError if it is none, or its entries overlap, leave gaps or do
/// not fill the file.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& file);

/// model.safetensors.index.json: which file holds which tensor.
std::string safetensors_index(const std::map<std::string, std::string>& file_of_tensor,
                              std::uint64_t total_bytes);

}  // namespace pfeife
