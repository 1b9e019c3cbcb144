#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/tensor_bytes.h"
#include "runtime/model/safetensors_file.h"
#include "runtime/train/training.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kGoTask = ~std::uint32_t{0} - 30;
constexpr std::uint32_t kDoneTask = ~std::uint32_t{0} - 31;
constexpr std::uint32_t kStateTask = ~std::uint32_t{0} - 32;
constexpr const char* kInfoFile = "checkpoint.json";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kPartial = ".partial-";
constexpr std::string_view kOption = "--save";

using NamedTensors = std::map<std::string, at::Tensor>;

std::string shard(const char* what, std::size_t rank, std::size_t ranks) {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05zu-of-%05zu.safetensors", what, rank + 1, ranks);
  return name;
}

std::string folder_name(std::int64_t steps) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(steps));
  return name;
}

/// The steps in the name of a checkpoint's folder.
std::optional<std::int64_t> steps_in(const std::string& name) {
  if (!name.starts_with("step-") || name.size() < 13 || name.size() > 23 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return {};
  return std::strtoll(name.c_str() + 5, nullptr, 10);
}

/// What belongs into a checkpoint, by name, with the lowest rank that holds it.
struct Holding {
  RankId rank;
  std::optional<ParameterId> parameter;
  ValueId buffer;  ///< if it is no parameter
};

std::map<std::string, Holding> holdings(const Pipeline& pipeline) {
  std::map<std::string, Holding> found;
  const auto add = [&](const std::string& name, const Holding& holding) {
    const auto [place, fresh] = found.try_emplace(name, holding);
    if (!fresh && holding.rank < place->second.rank) place->second = holding;
  };
  for (std::size_t s = 0; s < pipeline.split.stages.size(); ++s) {
    const StageSlice& slice = pipeline.split.stages[s];
    const RankId rank = pipeline.placement.rank_of_stage[s];
    for (const ParameterId p : slice.parameters)
      add(pipeline.graph.parameters[p.index()].names.front(), {rank, p, {}});
    for (const ValueId b : slice.buffers) {
      const Value& value = pipeline.graph.value(b);
      const bool state = value.role == ValueRole::Buffer &&
                         (value.persistent || std::ranges::binary_search(slice.written_buffers, b));
      if (state) add(value.source_name, {rank, std::nullopt, b});
    }
  }
  return found;
}

at::Tensor tensor_of(const Holding& holding, RankPipeline& own) {
  return holding.parameter ? own.tensors().parameters.at(*holding.parameter).detach()
                           : own.tensors().buffers.at(holding.buffer);
}

/// Elements [begin, begin + count) of a parameter's state, flat, where one replica has them.
struct StatePart {
  std::int64_t begin = 0;
  at::Tensor elements;
};

/// A parameter that no gradient has reached so far has the state zero, as update() would make it.
std::optional<StatePart> state_here(ParameterId parameter, const std::string& kind,
                                    RankPipeline& own) {
  const std::vector<ParameterRange> ranges = own.updated_here({&parameter, 1});
  const auto known = own.optimizer_state().find(parameter);
  if (ranges.empty() || known == own.optimizer_state().end() || !known->second.contains(kind))
    return {};
  return StatePart{ranges.front().begin, known->second.at(kind)};
}

/// The optimizer's state for a file. If replicas divide it, the first gets the parts of the others.
class WholeState {
 public:
  WholeState(const Pipeline& pipeline, RankPipeline& own, std::uint64_t step, Transport& transport)
      : own_(own),
        step_(step),
        transport_(transport),
        divided_(pipeline.replicas.count > 1 && pipeline.replicas.zero > 0),
        copies_(pipeline.copies_of(pipeline.pipeline_rank_of(transport.rank()))) {}

  /// On the first replica. If it is divided, each replica must ask in the same order.
  at::Tensor state(ParameterId parameter, const std::string& kind) {
    const at::Tensor like = own_.tensors().parameters.at(parameter).detach();
    const std::optional<StatePart> here = state_here(parameter, kind, own_);
    if (!divided_) return here ? here->elements : at::zeros_like(like);
    const Tag tag{step_, kStateTask, asked_++};
    if (own_.replica() > 0) {
      Tensors part;
      if (here) part = {at::scalar_tensor(here->begin, at::kLong), here->elements};
      transport_.send(copies_[0], tag, std::move(part));
      return like;
    }
    at::Tensor whole = at::zeros_like(like);
    const auto put = [&](std::int64_t begin, const at::Tensor& part) {
      whole.view({-1}).narrow(0, begin, part.numel()).copy_(part.view({-1}));
    };
    if (here) put(here->begin, here->elements);
    for (std::size_t r = 1; r < copies_.size(); ++r)
      if (const Tensors part = transport_.receive(copies_[r], tag).tensors; !part.empty())
        put(part.at(0).item<std::int64_t>(), part.at(1));
    return whole;
  }

 private:
  RankPipeline& own_;
  std::uint64_t step_;
  Transport& transport_;
  bool divided_;
  std::vector<RankId> copies_;
  std::uint32_t asked_ = 0;
};

/// The digests of the two files; none on replicas but the first, which give their part only.
std::vector<std::string> write_own_files(const std::filesystem::path& folder,
                                         const Pipeline& pipeline, RankPipeline& own,
                                         Optimizer optimizer, std::uint64_t step,
                                         Transport& transport) {
  const RankId rank = pipeline.pipeline_rank_of(transport.rank());
  WholeState whole(pipeline, own, step, transport);
  NamedTensors weights, states;
  for (const auto& [name, holding] : holdings(pipeline)) {
    if (holding.rank != rank) continue;
    weights[name] = tensor_of(holding, own);
    if (!holding.parameter || !pipeline.graph.parameters[holding.parameter->index()].trainable)
      continue;
    if (own.replica() > 0 && pipeline.replicas.zero == 0) continue;
    for (const std::string& kind : state_names(optimizer))
      states[name + "/" + kind] = whole.state(*holding.parameter, kind);
  }
  if (own.replica() > 0) return {};
  const std::filesystem::path model = folder / shard("model", rank.index(), pipeline.ranks()),
                              state = folder / shard("optimizer", rank.index(), pipeline.ranks());
  write_safetensors(model, weights, {{"format", "pt"}}, kOption);
  write_safetensors(state, states, {}, kOption);
  return {sha256_file(model), sha256_file(state)};
}

void write_durably(const std::filesystem::path& file, const std::string& text) {
  write_file(file, text, kOption);
  flush_to_disk(file, kOption);
}

std::string index_of(const Pipeline& pipeline, const Placing& placing) {
  std::map<std::string, std::string> file_of_tensor;
  std::uint64_t bytes = 0;
  for (const auto& [name, holding] : holdings(pipeline)) {
    file_of_tensor[name] = shard("model", holding.rank.index(), pipeline.ranks());
    const TensorType& type = holding.parameter
                                 ? pipeline.graph.parameters[holding.parameter->index()].type
                                 : pipeline.graph.value(holding.buffer).type;
    bytes += static_cast<std::uint64_t>(type.elements()) *
             c10::elementSize(placed_type(type.dtype, placing));
  }
  return safetensors_index(file_of_tensor, bytes);
}

/// Renamed first: a folder that is half removed has no checkpoint's name.
void remove_checkpoint(const std::filesystem::path& checkpoint) {
  const std::filesystem::path other =
      checkpoint.parent_path() / (kPartial + checkpoint.filename().string() + "-old");
  std::error_code ignored;
  std::filesystem::rename(checkpoint, other, ignored);
  std::filesystem::remove_all(other, ignored);
}

/// From now on it counts, and the others do not.
void publish(const std::filesystem::path& partial, const std::filesystem::path& checkpoint) {
  flush_to_disk(partial, kOption);
  // One of the same name, from a run that was continued further back, changes places with it.
  if (std::rename(partial.c_str(), checkpoint.c_str()) != 0 &&
      renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, checkpoint.c_str(), RENAME_EXCHANGE) != 0)
    throw write_failure(checkpoint, errno, kOption);
  flush_to_disk(checkpoint.parent_path(), kOption);
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.parent_path()))
    if (steps_in(entry.path().filename().string()) && entry.path() != checkpoint)
      old.push_back(entry.path());
  for (const auto& path : old) remove_checkpoint(path);
  remove_partial_checkpoints(checkpoint.parent_path());
}

/// Finds tensors in all files of a kind.
class Shards {
 public:
  Shards(const std::filesystem::path& folder, const std::vector<std::string>& names)
      : folder_(folder) {
    for (const std::string& name : names) files_.emplace_back(folder / name);
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (std::size_t e = 0; e < files_[f].header().entries.size(); ++e)
        places_[files_[f].header().entries[e].name] = {f, e};
  }

  /// Copies the named tensor into `to`.
  void read(const std::string& name, at::Tensor to) const {
    const auto place = places_.find(name);
    if (place == places_.end())
      throw ConfigError({folder_.string()}, "has no tensor '" + name + "', which the model has");
    const at::Tensor found = tensor(place->second);
    if (found.sizes() != to.sizes())
      throw ConfigError({folder_.string()}, stream_all("'", name, "' is ", found.sizes(),
                                                       ", the model has ", to.sizes()));
    const at::NoGradGuard no_gradients;
    to.copy_(found);
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // file, entry
  at::Tensor tensor(const Place& place) const {
    const SafetensorsFile& file = files_[place.first];
    return file.tensor(file.header().entries[place.second]);
  }

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> places_;
};

}  // namespace

void save_checkpoint(const std::filesystem::path& folder, const Pipeline& pipeline,
                     RankPipeline& own, const RankOptions& options, CheckpointInfo info,
                     Transport& transport) {
  const auto step = static_cast<std::uint64_t>(info.steps);
  const std::filesystem::path checkpoint = folder / folder_name(info.steps),
                              partial = folder / (kPartial + folder_name(info.steps));
  const RankId rank = transport.rank();
  const std::vector<RankId> writers = pipeline.replica_ranks(0);
  if (rank == RankId{0}) {
    make_folder(folder, kOption);
    remove_partial_checkpoints(folder);
    make_folder(partial, kOption);
    for (const RankId other : writers)
      if (other != rank) transport.send(other, {step, kGoTask, 0}, {});
  } else if (own.replica() == 0) {
    transport.receive(RankId{0}, {step, kGoTask, 0});
  }
  const std::vector<std::string> digests =
      write_own_files(partial, pipeline, own, options.optimizer.kind, step, transport);
  if (own.replica() > 0) return;
  transport.send(RankId{0}, {step, kDoneTask, 0},
                 {tensor_of_text(digests[0]), tensor_of_text(digests[1])});
  if (rank != RankId{0}) return;
  for (std::size_t r = 0; r < writers.size(); ++r) {
    const Tensors found = transport.receive(writers[r], {step, kDoneTask, 0}).tensors;
    info.model.push_back(shard("model", r, writers.size()));
    info.optimizer_state.push_back(shard("optimizer", r, writers.size()));
    info.digests[info.model.back()] = text_of(found.at(0));
    info.digests[info.optimizer_state.back()] = text_of(found.at(1));
  }
  const std::string index = index_of(pipeline, options.placing);
  info.digests[kIndexFile] = sha256(index);
  write_durably(partial / kIndexFile, index);
  write_durably(partial / kInfoFile, checkpoint_text(info));
  publish(partial, checkpoint);
}

std::filesystem::path newest_checkpoint(const std::filesystem::path& folder) {
  if (is_there(folder / kInfoFile)) return folder;
  std::int64_t most = -1;
  std::filesystem::path newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto steps = steps_in(entry.path().filename().string());
    if (steps && *steps > most && is_there(entry.path() / kInfoFile))
      most = *steps, newest = entry.path();
  }
  if (most < 0)
    throw ConfigError({folder.string()}, "holds no complete checkpoint (step-*/checkpoint.json)");
  return newest;
}

void load_checkpoint(const std::filesystem::path& checkpoint, const CheckpointInfo& info,
                     const Pipeline& pipeline, Optimizer optimizer, RankPipeline& own) {
  const Shards weights(checkpoint, info.model), states(checkpoint, info.optimizer_state);
  for (auto& [p, tensor] : own.tensors().parameters) {
    const Parameter& parameter = pipeline.graph.parameters[p.index()];
    const std::string& name = parameter.names.front();
    weights.read(name, tensor.detach());
    if (!parameter.trainable) continue;
    const ParameterId parameter_id = p;
    const std::vector<ParameterRange> ranges = own.updated_here({&parameter_id, 1});
    if (ranges.empty()) continue;  // another replica has it
    for (const std::string& kind : state_names(optimizer)) {
      at::Tensor state = at::empty_like(tensor.detach());
      states.read(name + "/" + kind, state);
      if (const ParameterRange& range = ranges.front(); range.count < state.numel())
        state = state.view({-1}).narrow(0, range.begin, range.count).clone();
      own.optimizer_state()[p][kind] = state;
    }
  }
  for (const auto& [name, holding] : holdings(pipeline))
    if (!holding.parameter && own.tensors().buffers.contains(holding.buffer))
      weights.read(name, own.tensors().buffers.at(holding.buffer));
  own.updates() = info.updates;
}

void require_model(const std::filesystem::path& file, const CheckpointInfo& info,
                   const Graph& graph) {
  if (info.model_digest != graph.digest)
    throw ConfigError({file.string()}, "is a checkpoint of another model (digest " +
                                           info.model_digest.substr(0, 12) + ", this one has " +
                                           graph.digest.substr(0, 12) + ")");
}

void remove_partial_checkpoints(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> partial;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(kPartial)) partial.push_back(entry.path());
  for (const auto& path : partial) std::filesystem::remove_all(path, ignored);
}

}  // namespace pfeife
