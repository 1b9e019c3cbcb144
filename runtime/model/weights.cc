#include "runtime/model/weights.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <set>

#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"
#include "runtime/device/device.h"
#include "runtime/model/mapped_file.h"
#include "runtime/model/name_hash.h"

namespace pfeife {
namespace {

at::Tensor initialised(const std::string& name, const TensorType& type, std::uint64_t seed) {
  const auto options = at::TensorOptions().dtype(scalar_type(type.dtype));
  at::Tensor tensor = at::empty_strided(type.sizes, type.strides, options);
  const bool one = name.ends_with("weight") || name.ends_with("running_var");
  if (!is_floating(type.dtype) || type.sizes.size() < 2)
    return tensor.fill_(is_floating(type.dtype) && one ? 1 : 0);
  const double fan_in = static_cast<double>(type.elements()) / static_cast<double>(type.sizes[0]);
  auto generator = at::detail::createCPUGenerator(mixed_seed({seed, hash_of(name)}));
  return tensor.normal_(0, 1 / std::sqrt(std::max(1.0, fan_in)), generator);
}

at::Tensor placed(const at::Tensor& tensor, DType dtype, const Placing& placing) {
  return tensor.to(placing.device, placed_type(dtype, placing), /*non_blocking=*/false,
                   /*copy=*/false, at::MemoryFormat::Preserve);
}

/// One more than the largest index that may stand in an integer input.
std::int64_t index_bound(const Graph& graph, ValueId input) {
  constexpr std::int64_t kFewest = 2;
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
      return known ? graph.value(of).type.sizes[dimension] : kFewest;
    };
    if (node.op == "aten::embedding" && reads("indices")) return size("weight", 0);
    if (node.op == "aten::cross_entropy_loss" && reads("target")) return size("self", 1);
  }
  return kFewest;
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
      tensor = at::randint(index_bound(graph, id), value.type.sizes, generator, at::kLong);
    inputs[id] = copied_ahead(tensor, placing.device, placed_type(value.type.dtype, placing));
  }
  return inputs;
}

}  // namespace pfeife
