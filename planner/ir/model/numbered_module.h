// The modules of a model that are in a list: layers.3, transformer.h.11, stages.0.blocks.4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pfeife {

/// The path up to the first of its words that is a number: "net.layers.3" of
/// "net.layers.3.mlp.up"; "" if none is.
std::string numbered_module(const std::string& path);

/// Such a path as its list and its place there: {"net.layers", 3}; nothing without a number.
struct ModuleNumber {
  std::string list;
  std::int64_t number = 0;
  friend bool operator==(const ModuleNumber&, const ModuleNumber&) = default;
};
std::optional<ModuleNumber> module_number(const std::string& path);

}  // namespace pfeife
