// Arguments of a node, from the one-key unions of a `.pt2` program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

#include "planner/io/model/batch_symbol.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

/// What names stand for while a graph is read.
struct Pt2Names {
  std::unordered_map<std::string, ValueId> values;  ///< tensors made so far
  const nlohmann::json* sizes = nullptr;            ///< sym_int_values: open sizes by name
  BatchSymbol batch{std::nullopt};

  ValueId tensor(const nlohmann::json& argument) const;  ///< {"name": ...}
  std::int64_t size(const std::string& name);
};

/// Value of an argument. Codes of memory formats become c10's (0 contiguous, 1 preserve, 2
/// channels_last, 3 channels_last_3d), of layouts likewise (0 strided). Malformed for kinds we do
/// not know, and for names of tensors that no earlier node makes.
ArgumentValue read_argument(const nlohmann::json& argument, Pt2Names& names);

}  // namespace pfeife
