// How pt2_reader.cc reads a model.json; each part is in a source of its name.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>

#include "planner/io/model/batch_symbol.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

// Types of tensors and places of parameters, as a `.pt2` archive writes them.

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

// Arguments of a node, from the one-key unions of a `.pt2` program.

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

// Which dimension of each input holds a microbatch's samples.

/// The dimension of `input` that is the open batch size, from the archive's `sizes` of it; none if
/// the batch size is in no dimension. Malformed (json_fields.h) if it is in several, or if one is a
/// multiple of it.
std::optional<std::size_t> open_batch_dimension(const Value& input, const nlohmann::json& sizes);

/// Sets the batch dimensions of the inputs and the microbatch size of a graph of one batch size:
/// those of `batch_dimensions` in `facts` (extra/pfeife.json); without it the first of every input
/// if all are equally long, else the only length that every input has once. Malformed, with the
/// input's shape and the remedy, if neither says it.
void settle_fixed_batch(Graph& graph, const nlohmann::json& facts);

// Builds a Graph from the program of a `.pt2` archive.

/// The graph of `program` (models/model.json) with the open batch size bound to `microbatch_size`,
/// or to the export's example without one. `weights` is the content of model_weights_config.json,
/// `facts` that of extra/pfeife.json ({} without it): "batch_dimensions" by input, of an archive of
/// one batch size; "loss_weight", the position of that output.
/// Name and digest are left empty. Malformed (json_fields.h), with node and remedy, for what we do
/// not understand or what is not consistent.
Graph build_pt2_graph(const nlohmann::json& program, const nlohmann::json& weights,
                      const nlohmann::json& facts, std::optional<std::int64_t> microbatch_size);

}  // namespace pfeife
