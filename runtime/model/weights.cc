#include "runtime/model/weights.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"
#include "runtime/device/device.h"
#include "runtime/model/safetensors_file.h"

namespace pfeife {
namespace {

at::Tensor initialised(const std::string& name, const TensorType& type, std::uint64_t seed) {
  const auto options = at::TensorOptions().dtype(scalar_type(type.dtype));
  at::Tensor tensor = at::empty_strided(type.sizes, type.strides, options);
  const bool filled_with_ones = name.ends_with("weight") || name.ends_with("running_var");
  if (!is_floating(type.dtype) || type.sizes.size() < 2)
    return tensor.fill_(is_floating(type.dtype) && filled_with_ones ? 1 : 0);
  const double fan_in = static_cast<double>(type.elements()) / static_cast<double>(type.sizes[0]);
  auto generator = at::detail::createCPUGenerator(mixed_seed({seed, hash_of(name)}));
  return tensor.normal_(0, 1 / std::sqrt(std::max(1.0, fan_in)), generator);
}

at::Tensor placed(const at::Tensor& tensor, DType dtype, const Placing& placing) {
  return tensor.to(placing.device, placed_type(dtype, placing), /*non_blocking=*/false,
                   /*copy=*/false, at::MemoryFormat::Preserve);
}

/// What may stand in an integer input: below a bound.
struct Indices {
  std::int64_t bound = 2;
  std::optional<std::int64_t> ignored;  ///< stands for no index in a target of the loss
};

Indices indices_of(const Graph& graph, ValueId input) {
  std::set<ValueId> same{input};  // the input and what is only reshaped from it
  for (const Node& node : graph.nodes) {
    for (const char* name : {"self", "input"})
      if (const Argument* a = node.find(name))
        if (const auto* v = std::get_if<ValueId>(&a->value);
            v && same.contains(*v) && node.outputs.size() == 1)
          same.insert(node.outputs[0]);
    const auto reads = [&](const char* name) { return same.contains(tensor_argument(node, name)); };
    const auto size = [&](const char* name, std::size_t dimension) {
      const ValueId of = tensor_argument(node, name);
      const bool known = of != kNoValue && graph.value(of).type.sizes.size() > dimension;
      return known ? graph.value(of).type.sizes[dimension] : Indices{}.bound;
    };
    if (node.op == "aten::embedding" && reads("indices")) return {size("weight", 0), {}};
    if (node.op == "aten::cross_entropy_loss" && reads("target"))
      return {size("self", 1),
              static_cast<std::int64_t>(number_argument(node, "ignore_index", -100))};
  }
  return {};
}

/// Inputs of the model that the value is computed from.
std::set<ValueId> inputs_behind(const Graph& graph, ValueId value) {
  std::set<ValueId> found{value};
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
    if (std::ranges::any_of(node->outputs, [&](ValueId out) { return found.contains(out); }))
      for (const ValueId in : inputs_of(*node)) found.insert(in);
  std::erase_if(found, [&](ValueId v) { return graph.value(v).role != ValueRole::Input; });
  return found;
}

/// Without a quarter of the labels, but with the last.
at::Tensor some_ignored(const at::Tensor& labels, std::int64_t ignored, at::Generator& generator) {
  at::Tensor left_out = at::randint(4, labels.sizes(), generator, at::kLong).eq(0);
  if (labels.numel() > 0) left_out.view({-1})[-1].fill_(false);
  return labels.masked_fill(left_out, ignored);
}

}  // namespace

std::uint64_t mixed_seed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t part : parts) {  // splitmix64
    state += part + 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  }
  return state;
}

WeightSource::WeightSource(std::filesystem::path path, std::uint64_t seed)
    : path_(std::move(path)),
      seed_(seed),
      weights_(std::make_shared<const Pt2Weights>(read_pt2_weights(path_))) {}

Graph WeightSource::graph(std::int64_t samples) const { return read_pt2(path_, samples); }

at::Tensor WeightSource::storage(std::size_t index) const {
  const Pt2Storage& storage = weights_->storages[index];
  if (storage.file_offset) return map_file(path_, *storage.file_offset, storage.bytes);
  const std::string bytes = read_pt2_storage(path_, storage);
  at::Tensor copy = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(copy.mutable_data_ptr()));
  return copy;
}

at::Tensor WeightSource::tensor(const std::string& name, const TensorType& type) const {
  if (!has(name)) return initialised(name, type, seed_);
  const Pt2Tensor& stored = weights_->tensors.at(name);
  at::Tensor view = at::empty({0}, scalar_type(stored.type.dtype));
  if (stored.type.elements() == 0) return view.reshape(stored.type.sizes);
  view.set_(storage(stored.storage).storage(), stored.type.storage_offset, stored.type.sizes,
            stored.type.strides);
  return view;
}

RankTensors load_tensors(const Graph& graph, const GraphSplit& split,
                         std::span<const StageId> stages, const WeightSource& source,
                         const Placing& placing) {
  RankTensors tensors;
  for (const StageId s : stages) {
    const StageSlice& slice = split.stages[s.index()];
    for (const ParameterId p : slice.parameters) {
      if (tensors.parameters.contains(p)) continue;
      const Parameter& parameter = graph.parameters[p.index()];
      at::Tensor tensor = placed(source.tensor(parameter.names.front(), parameter.type),
                                 parameter.type.dtype, placing);
      tensors.parameters[p] = tensor.detach().set_requires_grad(parameter.trainable);
    }
    for (const ValueId b : slice.buffers) {
      const Value& value = graph.value(b);
      if (!tensors.buffers.contains(b))
        tensors.buffers[b] =
            placed(source.tensor(value.source_name, value.type), value.type.dtype, placing);
    }
  }
  return tensors;
}

std::map<ValueId, at::Tensor> synthetic_inputs(const Graph& graph, std::uint64_t seed,
                                               MicrobatchId microbatch, const Placing& placing) {
  std::map<ValueId, at::Tensor> inputs;
  std::set<ValueId> counted;
  if (graph.loss_weight) counted = inputs_behind(graph, *graph.loss_weight);
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    auto generator = at::detail::createCPUGenerator(
        mixed_seed({seed, hash_of(value.name), static_cast<std::uint64_t>(microbatch.value)}));
    at::Tensor tensor;
    if (value.type.dtype == DType::Bool)
      tensor = at::randint(2, value.type.sizes, generator, at::kLong).to(at::kBool);
    else if (is_floating(value.type.dtype))
      tensor = at::randn(value.type.sizes, generator, at::kFloat);
    else
      tensor = at::randint(indices_of(graph, id).bound, value.type.sizes, generator, at::kLong);
    if (const auto ignored = indices_of(graph, id).ignored; ignored && counted.contains(id))
      tensor = some_ignored(tensor, *ignored, generator);
    if (counted.contains(id) && is_floating(value.type.dtype)) tensor = tensor.abs();
    inputs[id] = copied_ahead(tensor, placing.device, placed_type(value.type.dtype, placing));
  }
  return inputs;
}

}  // namespace pfeife
