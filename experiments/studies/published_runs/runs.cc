#include "experiments/studies/published_runs/runs.h"

#include <cmath>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"

namespace pfeife::published {
namespace {

namespace fs = std::filesystem;

/// Megatron's: pipeline stages are the furthest apart.
constexpr std::array<Axis, kAxes> kMegatron = {Axis::Tensor, Axis::Context, Axis::Data,
                                               Axis::Pipeline};

/// GPT as Megatron writes it; words padded to 51,200.
Architecture gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Architecture of;
  of.name = "gpt";
  of.layers = layers, of.hidden = hidden, of.heads = of.kv_heads = heads;
  of.head_size = hidden / heads, of.feed_forward = 4 * hidden;
  of.vocabulary = 51200, of.sequence = 2048, of.dropout = 0.1;
  return of;
}

MeshRun megatron(const Row& row) {
  MeshRun run;
  run.architecture = gpt(row.count("layers"), row.count("hidden"), row.count("heads"));
  run.mesh.order = kMegatron;
  run.mesh.size(Axis::Tensor) = row.count("tp");
  run.mesh.size(Axis::Pipeline) = row.count("pp");
  run.global_batch = row.count("global_batch");
  run.microbatch_size = row.count("microbatch");
  run.recomputation = Recompute::Full;
  run.scatter_gather = true;  // the code's default
  return run;
}
void interleave(MeshRun& run, std::int64_t chunks) {
  run.stages_per_rank = chunks;
  if (chunks > 1) run.schedule = "interleaved_1f1b";
}

std::vector<PublishedRun> vtrain(const fs::path& data) {
  std::vector<PublishedRun> runs;
  each_row(data / "vtrain_multi_node.csv", [&](const Row& row) {
    MeshRun run = megatron(row);
    run.mesh.size(Axis::Data) = row.count("dp");
    runs.push_back({"vtrain",
                    row.text("parameters_billion") + "B " + to_string(run.mesh) + " mb " +
                        row.text("microbatch"),
                    run, row.number("measured_ms") / 1e3});
  });
  return runs;
}

/// TFLOP/s a GPU count F = 96 B s l h^2 (1 + s / 6h + V / 16lh) a step.
std::vector<PublishedRun> narayanan(const fs::path& data) {
  std::vector<PublishedRun> runs;
  each_row(data / "narayanan2021_table1.csv", [&](const Row& row) {
    MeshRun run = megatron(row);
    const std::int64_t gpus = row.count("gpus");
    run.mesh.size(Axis::Data) = gpus / (row.count("tp") * row.count("pp"));
    interleave(run, row.count("chunks_per_rank"));
    // DDP=torch in the paper's scripts (Megatron-LM, examples/sc21/run_table_1.sh), else local.
    run.overlap_reductions = run.mesh.size(Axis::Pipeline) == 1;
    const auto l = row.number("layers"), h = row.number("hidden");
    const double flops = 96 * row.number("global_batch") * 2048 * l * h * h *
                         (1 + 2048 / (6 * h) + 51200 / (16 * l * h));
    runs.push_back(
        {"narayanan", row.text("layers") + " x " + row.text("hidden") + ", " + to_string(run.mesh),
         run, flops / (static_cast<double>(gpus) * row.number("measured_tflops_per_gpu") * 1e12)});
  });
  return runs;
}

std::vector<PublishedRun> korthikanti(const fs::path& data) {
  std::vector<PublishedRun> runs;
  for (const bool selective : {false, true})
    each_row(data / "korthikanti2022_table5.csv", [&](const Row& row) {
      MeshRun run = megatron(row);
      interleave(run, row.count("chunks_per_rank"));
      if (selective) run.recomputation = Recompute::Attention, run.sequence_parallel = true;
      run.overlap_input_gradients = true;
      const char* column = selective ? "selective_sequence_parallel_s" : "full_recompute_s";
      runs.push_back({"korthikanti",
                      row.text("model") + (selective ? " selective, sequence parallel" : " full"),
                      run, row.number(column)});
    });
  return runs;
}

/// Assumed: a layer a stage (126 layers, the first stage has the embedding alone and the last one
/// the head alone), and FLOPs with attention in full, as the definition of MFU that the paper cites
/// has them (Chowdhery et al. 2022): 6 a parameter and token, 12 l h s a token.
std::vector<PublishedRun> llama3(const fs::path& data, const Architecture& architecture) {
  std::vector<PublishedRun> runs;
  each_row(data / "llama3_table4.csv", [&](const Row& row) {
    MeshRun run;
    run.architecture = architecture;
    run.architecture.sequence = row.count("sequence");
    for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
      run.mesh.size(axis) = row.count(to_string(axis));
    run.global_batch = row.count("batch_per_dp") * row.count("dp");
    run.stages_per_rank = (architecture.layers + 2) / run.mesh.size(Axis::Pipeline);
    run.schedule = "interleaved_1f1b";
    run.sequence_parallel = true;
    run.zero = 2;
    run.overlap_reductions = true;  // FSDP
    run.type = DType::BFloat16;
    run.gradient_bytes = 3;  // 4 to reduce and scatter, 2 to gather parameters
    const auto tokens = static_cast<double>(run.global_batch * run.architecture.sequence);
    const double attention = 12.0 * static_cast<double>(architecture.layers) *
                             static_cast<double>(architecture.hidden) * row.number("sequence");
    const double flops =
        tokens * (6.0 * static_cast<double>(parameter_count(architecture)) + attention);
    runs.push_back({"llama3", to_string(run.mesh) + " sequence " + row.text("sequence"), run,
                    flops / (row.number("gpus") * row.number("measured_tflops_per_gpu") * 1e12)});
  });
  return runs;
}

/// What kernels of their year had: attention as a part of what products reach.
Network of_its_year(Network network) {
  network.device.attention.reset();
  return network;
}

}  // namespace

double Row::number(const std::string& column) const {
  return number_of(table_.at(row_, column), column);
}
std::int64_t Row::count(const std::string& column) const {
  return static_cast<std::int64_t>(std::llround(number(column)));
}
std::string Row::text(const std::string& column) const { return table_.at(row_, column).text; }

void each_row(const fs::path& file, const std::function<void(const Row&)>& read) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  for (std::size_t row = 0; row < table.rows(); ++row) read(Row(table, row));
}

std::vector<Source> read_sources(const fs::path& data, const fs::path& configs) {
  const fs::path a100 = configs / "clusters/a100_sxm4_80gb_hosts.yaml";
  const Network selene = of_its_year(read_network(a100));
  // 800 Gbit/s a host, of which NCCL reaches the part that the cluster file has.
  const Network slower = of_its_year(
      read_network(a100, {YamlDocument::assignment("between_hosts.bandwidth=11.4 GB/s")}));
  const Network h100 = of_its_year(read_network(configs / "clusters/h100_sxm_hosts.yaml"));
  const Architecture llama = read_architecture(configs / "architectures/llama3_405b.yaml");
  return {{"korthikanti", "Korthikanti et al. 2023", "a100", selene, korthikanti(data)},
          {"narayanan", "Narayanan et al. 2021", "a100", selene, narayanan(data)},
          {"vtrain", "vTrain, Bang et al. 2024", "a100", slower, vtrain(data)},
          {"llama3", "Llama 3, 2024", "h100", h100, llama3(data, llama)}};
}

}  // namespace pfeife::published
