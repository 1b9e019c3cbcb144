#include "planner/ir/machine/mesh_run.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// "4 or 8": the divisors of `whole` next to `size`.
std::string nearest_divisors(std::int64_t whole, std::int64_t size) {
  std::int64_t below = std::min(size, whole), above = size;
  while (whole % below != 0) --below;
  while (above < whole && whole % above != 0) ++above;
  if (above > whole || whole % above != 0) return std::to_string(below);
  return below == above ? std::to_string(below)
                        : std::to_string(below) + " or " + std::to_string(above);
}

/// What the layers of a model are made of.
struct Parts {
  bool attention = false, mamba = false, dense = false, experts = false;
  bool masked = false;  ///< attention with a window or chunks
};
Parts parts_of(const Architecture& of) {
  Parts parts;
  for (std::int64_t l = 0; l < of.layers; ++l) {
    const LayerKind kind = layer_kind(of, l);
    parts.attention |= kind.mixer == MixerKind::Attention;
    parts.mamba |= kind.mixer == MixerKind::Mamba;
    parts.dense |= kind.feed_forward == FeedForwardKind::Dense;
    parts.experts |= kind.feed_forward == FeedForwardKind::Experts;
    parts.masked |= kind.window > 0 || kind.chunk > 0;
  }
  return parts;
}

void check_tensor(const MeshRun& run) {
  const Architecture& of = run.architecture;
  const std::int64_t tp = run.mesh.size(Axis::Tensor);
  const Parts parts = parts_of(of);
  if (parts.attention) {
    must_divide("tp", tp, "heads", of.heads);
    if (tp < of.kv_heads) must_divide("tp", tp, "key and value heads", of.kv_heads);
    if (tp > of.kv_heads && tp % of.kv_heads != 0)
      throw ConfigError({}, stream_all("tp ", tp, " is no multiple of the ", of.kv_heads,
                                       " key and value heads; nearest: tp ", of.kv_heads));
  }
  if (parts.mamba) {
    must_divide("tp", tp, "groups of a Mamba layer", of.mamba->groups);
    must_divide("tp", tp, "heads of a Mamba layer", of.mamba->heads);
  }
  if (parts.experts || of.experts == 0)
    must_divide("tp", tp, "columns of the feed-forward layer", of.feed_forward);
  if (parts.experts && of.shared_feed_forward > 0)
    must_divide("tp", tp, "columns of the shared experts", of.shared_feed_forward);
  if (parts.dense && of.dense_feed_forward > 0)
    must_divide("tp", tp, "columns of the dense layers' feed-forward", of.dense_feed_forward);
  must_divide("tp", tp, "words of the vocabulary (pad it)", of.vocabulary);
}

/// A rank of cp has a part of a Mamba layer's heads.
void check_mamba_context(const MeshRun& run) {
  const Mamba& mamba = *run.architecture.mamba;
  const std::int64_t tp = run.mesh.size(Axis::Tensor), cp = run.mesh.size(Axis::Context);
  const std::int64_t groups = mamba.groups / tp;
  must_divide("cp", cp, "heads of a Mamba layer on a rank of tp", mamba.heads / tp);
  if (cp > groups ? cp % groups != 0 : groups % cp != 0)
    throw ConfigError({}, stream_all("cp ", cp, " neither divides the ", groups,
                                     " groups of a Mamba layer on a rank of tp, nor is their "
                                     "multiple; nearest: cp ",
                                     nearest_divisors(groups, cp)));
}

void check_sequence(const MeshRun& run) {
  const std::int64_t cp = run.mesh.size(Axis::Context), tp = run.mesh.size(Axis::Tensor);
  const Architecture& of = run.architecture;
  const Parts parts = parts_of(of);
  if (of.sequence == 0)
    throw ConfigError({},
                      "the model leaves open how long its sequences are; say training.sequence");
  if (of.positions > 0 && of.sequence > of.positions)
    throw ConfigError({}, stream_all("sequences of ", of.sequence, " tokens, and ", of.positions,
                                     " positions that are learned; shorten training.sequence"));
  must_divide("cp", cp, "tokens of a sequence", of.sequence);
  if (run.sequence_parallel)
    must_divide("tp", tp, "tokens of a rank (sequence parallelism)",
                run.architecture.sequence / cp);
  if (parts.attention && !divides_context(of)) {
    if (cp > 1)
      throw ConfigError({},
                        stream_all("cp ", cp, " needs fused attention; write `attention: fused` ",
                                   "in the architecture, or cp 1"));
    if (parts.masked)
      throw ConfigError({},
                        "a window or chunks of attention need a fused kernel; write `attention: "
                        "fused` in the architecture");
  }
  if (parts.mamba) check_mamba_context(run);
}

void check_experts(const MeshRun& run) {
  const std::int64_t ep = run.mesh.experts;
  if (run.expert_imbalance != 1 && run.architecture.experts == 0)
    throw ConfigError({}, stream_all("expert_imbalance ", run.expert_imbalance,
                                     ": the model has no experts; leave it out"));
  if (ep == 1) return;
  if (run.expert_imbalance > static_cast<double>(ep))
    throw ConfigError({}, stream_all("expert_imbalance ", run.expert_imbalance, ": with ep ", ep,
                                     " a rank gets at most all tokens, ", ep,
                                     " times the mean; give at most ", ep));
  if (run.architecture.experts == 0)
    throw ConfigError(
        {}, "ep " + std::to_string(ep) + ": the model has no experts to divide; leave ep out");
  must_divide("ep", ep, "experts", run.architecture.experts);
  must_divide("ep", ep, "replicas (dp)", run.mesh.size(Axis::Data));
}

void check_modules(const MeshRun& run) {
  if (run.modules.empty()) return;
  const std::vector<Module> has = modules_of(run.architecture);
  for (const Module module : run.modules) {
    if (std::ranges::find(has, module) != has.end()) continue;
    std::string names;
    for (const Module other : has) names += (names.empty() ? "" : ", ") + to_string(other);
    throw ConfigError({}, stream_all("recompute_modules: no layer of the model has ",
                                     to_string(module), "; it has ", names));
  }
}

}  // namespace

void must_divide(const std::string& name, std::int64_t size, const std::string& what,
                 std::int64_t whole) {
  if (whole % size == 0) return;
  throw ConfigError({}, stream_all(name, " ", size, " does not divide the ", whole, " ", what,
                                   "; nearest: ", name, " ", nearest_divisors(whole, size)));
}

MeshRun measured_run(const MeasuredPeak& peak, MeshRun run) {
  run.mesh.sizes = {peak.tp, peak.cp, peak.pp, peak.dp};
  run.mesh.experts = peak.ep;
  run.microbatch_size = peak.microbatch_size;
  if (peak.global_batch > 0) run.global_batch = peak.global_batch;
  run.stages_per_rank = peak.stages_per_rank;
  run.schedule = peak.stages_per_rank > 1 ? "interleaved_1f1b" : "1f1b";
  const std::int64_t stages = peak.pp * peak.stages_per_rank;
  run.balanced =
      run.architecture.layers % stages != 0 && (run.architecture.layers + 2) % stages != 0;
  run.zero = peak.zero;
  run.recomputation = peak.recomputation;
  run.sequence_parallel = run.sequence_parallel && peak.tp > 1;
  return run;
}

std::int64_t MeshRun::microbatches() const {
  return global_batch / (mesh.size(Axis::Data) * microbatch_size);
}

void check_run(const MeshRun& run) {
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    if (run.mesh.size(axis) < 1)
      throw ConfigError(
          {}, stream_all(to_string(axis), " is ", run.mesh.size(axis), ", and must be at least 1"));
  check_tensor(run);
  check_sequence(run);
  check_experts(run);
  check_modules(run);
  must_divide("dp", run.mesh.size(Axis::Data), "sequences of the global batch", run.global_batch);
  must_divide("the microbatch size", run.microbatch_size, "sequences of a replica",
              run.global_batch / run.mesh.size(Axis::Data));
  if (!run.balanced) {
    layers_of_stages(run);
    return;
  }
  const std::int64_t pieces = run.architecture.layers + 2;
  const std::int64_t stages = run.mesh.size(Axis::Pipeline) * run.stages_per_rank;
  if (stages > pieces)
    throw ConfigError({},
                      stream_all("pp ", run.mesh.size(Axis::Pipeline), " x ", run.stages_per_rank,
                                 " stages a rank are more than the ", pieces,
                                 " layers with embedding and head; nearest: ", pieces, " stages"));
}

std::vector<Module> modules_of(const Architecture& architecture) {
  const Parts parts = parts_of(architecture);
  std::vector<Module> modules;
  for (const Module module : all_modules()) {
    const bool has = module == Module::Norm            ? true
                     : module == Module::LatentUp      ? architecture.latent.has_value()
                     : module == Module::CoreAttention ? parts.attention
                     : module == Module::SharedExperts
                         ? parts.experts && architecture.shared_experts > 0
                     : module == Module::FeedForward ? parts.dense
                                                     : parts.experts;
    if (has) modules.push_back(module);
  }
  return modules;
}

std::vector<std::vector<Module>> modules_to_try(const Architecture& architecture) {
  std::vector<std::vector<Module>> sets;
  std::vector<Module> so_far;
  for (const Module module : modules_of(architecture)) {
    sets.push_back({module});
    so_far.push_back(module);
    if (so_far.size() > 1) sets.push_back(so_far);
  }
  return sets;
}

std::string recomputed_text(const MeshRun& run) {
  if (run.modules.empty()) return to_string(run.recomputation);
  std::string text = run.recomputation == Recompute::None ? "" : to_string(run.recomputation);
  for (const Module module : run.modules) text += (text.empty() ? "" : "+") + to_string(module);
  return text;
}

bool divides_context(const Architecture& architecture) {
  return architecture.attention == AttentionKind::Fused;
}

DeviceKind mesh_device(const MeshRun& run, const Network& network) {
  std::int64_t communicators = run.mesh.experts > 1 ? 1 : 0;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    if (run.mesh.size(axis) > 1) ++communicators;
  DeviceKind device = network.device;
  device.reserve = std::max(device.reserve, outside_allocator(communicators));
  return device;
}

std::string to_string(RankKernels kernels) {
  return kernels == RankKernels::Megatron ? "megatron" : "eager";
}

std::string precision_of(const MeshRun& run) {
  if (run.format != Format::Wide) return to_string(run.format);
  return run.type == DType::BFloat16 ? "bf16" : "fp16";
}

std::vector<std::int64_t> used_domains(const Mesh& mesh, const Network& network) {
  std::vector<std::int64_t> used;
  std::int64_t part = network.devices_per_host, used_of_part = part;
  for (const NetworkLevel& level : network.levels) {
    if (level.devices == 0) {
      used.push_back(mesh.devices());
      break;
    }
    const std::int64_t parts = level.devices / part;
    std::int64_t taken = parts;
    while (taken > 0 && !hosts_align(mesh, taken * used_of_part)) --taken;
    used.push_back((taken > 0 ? taken : parts) * used_of_part);
    part = level.devices, used_of_part = used.back();
  }
  return used;
}

std::size_t ranks_in_domain(const Mesh& mesh, std::int64_t devices) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(devices / mesh.stride(Axis::Pipeline), 1,
                                                           mesh.size(Axis::Pipeline)));
}

std::string level_link(std::size_t level) {
  return level == 0 ? "port" : level == 1 ? "nic" : "level" + std::to_string(level);
}

Network message_network(const MeshRun& run, Network network) {
  const std::int64_t tp = run.mesh.size(Axis::Tensor);
  const NetworkLevel inner = network.inner();
  const bool near = tp * run.mesh.stride(Axis::Tensor) <= inner.devices;
  if (!run.scatter_gather || run.sequence_parallel || tp == 1 || !near) return network;
  const auto parts = static_cast<double>(tp);
  for (std::size_t level = 1; level < network.levels.size(); ++level) {
    NetworkLevel& outer = network.levels[level];
    outer.bandwidth = {parts / (1 / outer.bandwidth.value + (parts - 1) / inner.bandwidth.value)};
    outer.latency += inner.latency;
  }
  return network;
}

std::vector<std::int64_t> layers_of_stages(const MeshRun& run) {
  const std::int64_t layers = run.architecture.layers;
  const std::int64_t stages = run.mesh.size(Axis::Pipeline) * run.stages_per_rank;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), (layers + 2) / stages);
  if (layers % stages == 0) {
    std::ranges::fill(counts, layers / stages);
  } else if (stages > 1 && (layers + 2) % stages == 0) {
    --counts.front(), --counts.back();
  } else {
    throw ConfigError(
        {}, stream_all("pp ", run.mesh.size(Axis::Pipeline), " x ", run.stages_per_rank,
                       " stages a rank divide neither the ", layers,
                       " layers nor these with embedding and head (", layers + 2,
                       "); nearest numbers of stages: ", nearest_divisors(layers, stages)));
  }
  return counts;
}

}  // namespace pfeife
