// Types of tensors and places of parameters, as a `.pt2` archive writes them.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/io/model/batch_symbol.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

/// A dtype by torch's serialized number; Malformed if it is none we know.
DType dtype_of_code(std::int64_t code);

/// {"dtype", "sizes", "strides", "storage_offset", "layout"} with the batch size bound. Malformed
/// for sparse tensors, negative sizes, and anything larger than kLargestTensor.
TensorType read_tensor_type(const nlohmann::json& meta, BatchSymbol& batch);

constexpr Bytes kLargestTensor{std::int64_t{1}
                               << 44};  // so that sums over a whole graph fit into 64 bits

/// Where each parameter lies: equal places (file, offset, sizes, strides) are tied parameters.
class ParameterPlaces {
 public:
  /// From the content of model_weights_config.json.
  explicit ParameterPlaces(const nlohmann::json& weights_config);

  /// Place of the parameter `name` as text that is equal for tied parameters only. Malformed if
  /// there is none.
  const std::string& at(const std::string& name) const;

 private:
  std::map<std::string, std::string> place_of_name_;
};

}  // namespace pfeife
