#include <algorithm>
#include <string_view>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/tensors/npy_header.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/device.h"
#include "runtime/device/tensor_bytes.h"
#include "runtime/model/safetensors_file.h"
#include "runtime/train/training.h"

namespace pfeife {
namespace {

std::string shape_text(const Value& input) {
  std::string text;
  for (std::size_t i = 0; i < input.type.sizes.size(); ++i)
    text += (i > 0 ? ", " : "") +
            (i == *input.batch_dimension ? "samples" : std::to_string(input.type.sizes[i]));
  return "[" + text + "]";
}

/// All sizes but the number of samples.
bool fits(std::vector<std::int64_t> sizes, const Value& input) {
  const std::size_t d = *input.batch_dimension;
  if (sizes.size() == input.type.sizes.size()) sizes[d] = input.type.sizes[d];
  return sizes == input.type.sizes;
}

/// The file of an input, checked against it.
at::Tensor mapped(const std::filesystem::path& file, const Value& input) {
  const TensorType& type = input.type;
  if (!input.batch_dimension)
    throw ConfigError({file.string()},
                      "the input '" + input.name + "' of the model has no dimension of samples");
  if (!is_there(file))
    throw ConfigError({file.string()}, "is missing: the model has an input '" + input.name + "', " +
                                           to_string(type.dtype) + " " + shape_text(input));
  const NpyHeader header = read_npy_header(file);
  if (header.dtype != type.dtype)
    throw ConfigError({file.string()}, "holds " + to_string(header.dtype) + ", the input '" +
                                           input.name + "' is " + to_string(type.dtype) +
                                           "; convert it with astype");
  if (!fits(header.sizes, input))
    throw ConfigError({file.string()},
                      stream_all("has the shape ", at::IntArrayRef(header.sizes), ", the input '",
                                 input.name, "' needs ", shape_text(input)));
  return map_tensor(file, header.begin, scalar_type(header.dtype), header.sizes);
}

/// The digest of the whole, or of pieces if that is much.
std::string content_digest(const at::Tensor& file) {
  constexpr std::size_t kWhole = std::size_t{64} << 20, kPieces = 256, kPiece = 64 << 10;
  const std::span<const char> bytes = stored_bytes(file);
  const std::string_view all(bytes.data(), bytes.size());
  if (all.size() <= kWhole) return sha256(all);
  std::string pieces;
  for (std::size_t i = 0; i < kPieces; ++i)
    pieces += all.substr((all.size() - kPiece) / (kPieces - 1) * i, kPiece);
  return sha256(pieces += all.substr(all.size() - kPiece));
}

}  // namespace

at::Tensor shuffled_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  return at::randperm(samples,
                      at::detail::createCPUGenerator(seed + static_cast<std::uint64_t>(epoch)),
                      at::TensorOptions(at::kLong));
}

std::set<ValueId> inputs_of(const Pipeline& pipeline, const std::vector<StageId>& stages) {
  std::set<ValueId> read;
  for (const StageId s : stages) {
    const std::vector<ValueId>& inputs = pipeline.split.stages[s.index()].inputs;
    read.insert(inputs.begin(), inputs.end());
  }
  return read;
}

TrainingData::TrainingData(const std::filesystem::path& folder, const Pipeline& pipeline)
    : pipeline_(pipeline),
      samples_per_step_(static_cast<std::int64_t>(pipeline.microbatches * pipeline.replicas.count) *
                        pipeline.graph.microbatch_size) {
  std::filesystem::path first;
  for (const ValueId id : pipeline.graph.inputs) {
    const Value& input = pipeline.graph.value(id);
    const std::filesystem::path file = folder / (input.name + ".npy");
    files_[id] = mapped(file, input);
    const std::int64_t samples = files_[id].size(dimension(id));
    if (first.empty()) first = file, samples_ = samples;
    if (samples != samples_)
      throw ConfigError({file.string()}, stream_all("has ", samples, " samples, ",
                                                    first.filename().string(), " has ", samples_));
  }
  if (samples_ < samples_per_step_)
    throw ConfigError({first.string()},
                      stream_all("has ", samples_, " samples, a step needs ", samples_per_step_));
}

std::int64_t TrainingData::dimension(ValueId input) const {
  return static_cast<std::int64_t>(*pipeline_.graph.value(input).batch_dimension);
}

std::string TrainingData::digest() const {
  std::string text;
  for (const auto& [id, file] : files_) {
    const Value& input = pipeline_.graph.value(id);
    text += stream_all(input.name, " ", to_string(input.type.dtype), " ", file.sizes(), " ",
                       content_digest(file), "\n");
  }
  return sha256(text);
}

std::int64_t TrainingData::in_step(std::int64_t sample) const {
  return std::min(samples_per_step_, samples_ - sample);
}

std::int64_t TrainingData::after(std::int64_t sample) const {
  const std::int64_t next = sample + samples_per_step_;
  const std::int64_t least = pipeline_.graph.symbolic_batch ? 1 : samples_per_step_;
  return next + least <= samples_ ? next : 0;
}

StepInputs TrainingData::step(std::uint64_t step, std::int64_t sample,
                              const std::set<ValueId>& needed, const Placing& placing,
                              std::size_t replica, const at::Tensor& order) const {
  StepInputs inputs;
  inputs.step = step;
  inputs.first_microbatch = replica * pipeline_.microbatches;
  const std::int64_t all = in_step(sample), end = sample + all;
  sample = std::min(
      sample + static_cast<std::int64_t>(inputs.first_microbatch) * pipeline_.graph.microbatch_size,
      end);
  for (std::size_t m = 0; m < pipeline_.microbatches; ++m) {
    const std::int64_t count = std::min(pipeline_.graph.microbatch_size, end - sample);
    auto& microbatch = inputs.microbatches.emplace_back();
    for (const auto& [id, file] : files_) {
      const at::ScalarType type = placed_type(pipeline_.graph.value(id).type.dtype, placing);
      const at::Tensor samples =
          order.defined() && needed.contains(id)
              ? file.index_select(dimension(id), order.narrow(0, sample, count))
              : file.narrow(dimension(id), sample, count);
      if (!needed.contains(id))
        microbatch[id] = samples.to(type);
      else if (placing.device.is_cpu())
        microbatch[id] = samples.to(type, /*non_blocking=*/false, /*copy=*/true);
      else
        microbatch[id] = copied_ahead(samples, placing.device, type);
    }
    inputs.samples.push_back(count);
    inputs.shares.push_back(static_cast<double>(count) / static_cast<double>(all));
    sample += count;
  }
  return inputs;
}

}  // namespace pfeife
