#include "experiments/studies/published_runs/recent_runs.h"

#include <map>

#include "planner/io/cluster/mesh_file.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"

namespace pfeife::published {
namespace {

namespace fs = std::filesystem;

/// A model of MosaicML's llm-foundry (scripts/train/yamls/pretrain/mpt-*.yaml): learned positions,
/// no biases, no dropout.
Architecture mpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Architecture model;
  model.layers = layers, model.hidden = hidden, model.heads = model.kv_heads = heads;
  model.head_size = hidden / heads, model.feed_forward = 4 * hidden, model.vocabulary = 50368;
  model.attention = AttentionKind::Fused;
  model.bias = {false, false, false};
  return model;
}

/// Its published config.json.
Architecture deepseek_v2(Architecture model) {
  model.layers = 60, model.hidden = 5120, model.experts = 160, model.top_k = 6;
  model.shared_experts = 2, model.feed_forward = 1536, model.vocabulary = 102400;
  model.dense_layers = 1, model.dense_feed_forward = 12288;
  return model;
}

/// "llama3_70b/12": the first 12 layers; of DeepSeek's one has no experts.
Architecture architecture_of(const std::string& text, const fs::path& configs) {
  const auto cut = text.find('/');
  const std::string name = text.substr(0, cut);
  const auto file = [&](const std::string& known) {
    const fs::path yaml = configs / "architectures" / (known + ".yaml");
    return read_architecture(fs::exists(yaml) ? yaml : fs::path(yaml).replace_extension(".json"));
  };
  const std::map<std::string, Architecture> mpts = {{"mpt_3b", mpt(32, 2560, 20)},
                                                    {"mpt_7b", mpt(32, 4096, 32)},
                                                    {"mpt_13b", mpt(40, 5120, 40)},
                                                    {"mpt_30b", mpt(48, 7168, 56)},
                                                    {"mpt_70b", mpt(80, 8192, 64)}};
  Architecture model = mpts.contains(name)     ? mpts.at(name)
                       : name == "deepseek_v2" ? deepseek_v2(file("deepseek_v3"))
                                               : file(name);
  if (cut == std::string::npos) return model;
  model.layers = std::stoll(text.substr(cut + 1));
  model.dense_layers = std::min<std::int64_t>(model.dense_layers, 1);
  return model;
}

Network network_of(const std::string& device, const fs::path& configs) {
  struct Machine {
    std::string file;
    std::vector<std::string> set;
  };
  const std::string h100 = "device_kinds.h100_sxm.", a100 = "device_kinds.a100_sxm4_80gb.";
  const std::map<std::string, Machine> machines = {
      {"a100_80gb", {"a100_sxm4_80gb_hosts", {}}},
      {"a100_40gb",
       {"a100_sxm4_80gb_hosts", {a100 + "memory=40960 MiB", a100 + "memory_bandwidth=1555 GB/s"}}},
      {"h100", {"h100_sxm_hosts", {}}},
      {"h100_500w",  // 96 GB of HBM2e
       {"h100_sxm_hosts", {h100 + "memory=96 GiB", h100 + "memory_bandwidth=2400 GB/s"}}},
      {"h200", {"h200_x8", {"between_hosts={bandwidth: 45.5 GB/s, latency: 20 us}"}}},
      {"b200", {"b200_sxm_hosts", {}}},
      {"b300", {"b300_sxm_hosts", {}}},
      {"gb200", {"gb200_nvl72", {}}},
      {"gb300", {"gb300_nvl72", {}}}};
  const Machine& machine = machines.at(device);
  Replaced replaced;
  for (const std::string& text : machine.set) replaced.push_back(YamlDocument::assignment(text));
  return read_network(configs / "clusters" / (machine.file + ".yaml"), replaced);
}

/// What the kernels of a source had, where they are not those of today.
void set_attention(const std::string& source, DeviceKind& device) {
  // FlashAttention 1 and Triton's of 2023: the planner's default.
  if (source == "MosaicML") device.attention.reset();
  // torch's own, of FlashAttention-2: 370 and 318 of 989 TFLOP/s on an H100 (arXiv 2407.08608).
  if (source == "torchtitan") device.attention = {"FlashAttention-2", 0.37, 0.32};
}

/// Bytes of an element's gradient as reduced, halved where it is scattered and gathered (ZeRO 1):
/// 4 and 2 by Megatron-LM's default; torchtitan's FSDP scatters 4; 2 in the others' recipes.
std::int64_t gradient_bytes(const std::string& source) {
  if (source == "SimuMax" || source == "Megatron-LM") return 3;
  return source == "torchtitan" ? 4 : 2;
}

/// Megatron-LM reduces the gradient of a product's input beside its weight gradient unless it is
/// told otherwise; SimuMax, MLPerf's logs and Megatron-Bridge run it.
bool runs_megatron(const std::string& source) {
  return source.starts_with("Megatron") || source == "MLPerf" || source == "SimuMax";
}

/// The row is of Megatron-Bridge's release 26.06 or later, on GB200 or GB300.
bool has_recipe_of_2026(const std::string& device, const std::string& from) {
  const auto release = from.rfind("; ");
  return release != std::string::npos && from.substr(release + 2) >= "26.06" &&
         device.starts_with("gb");
}

/// Megatron-Bridge's products of experts are cuBLAS's, one an expert; from release 26.06 on its
/// recipes for the rows of GB200 and GB300 have one kernel (cutedsl_fused_grouped_mlp in
/// scripts/performance/configs of its tag v0.5.0).
bool runs_kernel_an_expert(const std::string& source, const std::string& device,
                           const std::string& from) {
  return source == "Megatron-Bridge" && !has_recipe_of_2026(device, from);
}

/// overlap_moe_expert_parallel_comm in the recipes of DeepSeek-V3 and Qwen3, and in the skill
/// nemo-mbridge-perf-expert-parallel-overlap.
bool hides_experts(const std::string& model, const std::string& device, const std::string& from) {
  return from.find("expert-parallel-overlap") != std::string::npos ||
         (has_recipe_of_2026(device, from) &&
          (model.starts_with("deepseek") || model.starts_with("qwen3")));
}

/// One stage a rank has 1F1B. Layers that do not divide are balanced.
void set_pipeline(MeshRun& run, std::int64_t stages_per_rank) {
  run.stages_per_rank = stages_per_rank;
  if (stages_per_rank > 1) run.schedule = "interleaved_1f1b";
  const std::int64_t stages = stages_per_rank * run.mesh.size(Axis::Pipeline);
  run.balanced =
      run.architecture.layers % stages != 0 && (run.architecture.layers + 2) % stages != 0;
}

/// SimuMax's scripts (simu_tools/megatron_scripts at 4dcaae513b) run Megatron-LM 0.14 and
/// Transformer Engine 2.11, whose words are padded to 128 a rank of tp, without
/// --overlap-grad-reduce.
void set_simumax(MeshRun& run) {
  const std::int64_t whole = 128 * run.mesh.size(Axis::Tensor);
  std::int64_t& words = run.architecture.vocabulary;
  words = (words + whole - 1) / whole * whole;
  run.kernels = RankKernels::Megatron, run.overlap_reductions = false;
}

double step_seconds(const Row& row, const MeshRun& run) {
  const double measured = row.number("measured");
  const std::string unit = row.text("unit");
  if (unit == "s/step") return measured;
  if (unit == "ms/step") return measured / 1e3;
  return static_cast<double>(run.global_batch * run.architecture.sequence) /
         (row.number("devices") * measured);
}

PublishedRun recent_run(const Row& row, const std::string& name, const fs::path& configs) {
  MeshRun run;
  const std::string source = row.text("source"), recompute = row.text("recompute");
  run.architecture = architecture_of(row.text("model"), configs);
  run.architecture.sequence = row.count("sequence");
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    run.mesh.size(axis) = row.count(to_string(axis));
  run.mesh.experts = row.count("ep");
  run.global_batch = row.count("global_batch"), run.microbatch_size = row.count("microbatch");
  set_pipeline(run, row.count("stages_per_rank"));
  const MeshPrecision precision = mesh_precision_named(row.text("precision"));
  run.type = precision.type, run.format = precision.format;
  run.zero = static_cast<int>(row.count("zero"));
  run.gradient_bytes = gradient_bytes(source);
  run.sequence_parallel = run.mesh.size(Axis::Tensor) > 1;
  run.overlap_input_gradients = runs_megatron(source);
  run.overlap_reductions = true, run.once_a_host = row.text("dispatch") == "once_a_host";
  if (source == "SimuMax") set_simumax(run);
  if (recompute == "full") run.recomputation = Recompute::Full;
  run.separate_experts = runs_kernel_an_expert(source, row.text("device"), row.text("from"));
  for (const Module module : all_modules())
    if (("+" + recompute + "+").find("+" + to_string(module) + "+") != std::string::npos)
      run.modules.push_back(module);
  PublishedRun published{name,
                         row.text("model") + " on " + row.text("devices") + ", " +
                             to_string(run.mesh) + " mb " + row.text("microbatch") + " s " +
                             row.text("sequence"),
                         run, step_seconds(row, run)};
  published.half_recomputed = recompute == "half";
  published.hides_experts = hides_experts(row.text("model"), row.text("device"), row.text("from"));
  if (!row.text("memory_gib").empty()) published.peak = row.number("memory_gib");
  return published;
}

}  // namespace

std::vector<Source> read_recent_sources(const fs::path& data, const fs::path& configs) {
  std::vector<Source> sources;
  each_row(data / "published2026.csv", [&](const Row& row) {
    const std::string source = row.text("source"), device = row.text("device"),
                      name = source + ", " + device + ", " + row.text("precision");
    if (sources.empty() || sources.back().name != name) {
      // SimuMax's have products, attention and collectives of their own host.
      if (source == "SimuMax")
        sources.push_back({name,
                           name,
                           "measured_" + device,
                           read_network(data / ("simumax_" + device + ".yaml")),
                           {}});
      else
        sources.push_back({name, name, device, network_of(device, configs), {}});
      set_attention(source, sources.back().network.device);
    }
    sources.back().runs.push_back(recent_run(row, name, configs));
  });
  return sources;
}

}  // namespace pfeife::published
