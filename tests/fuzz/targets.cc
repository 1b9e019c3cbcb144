#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/experiment/parallel_config.h"
#include "planner/io/files/digest.h"
#include "planner/io/model/imported_layers.h"
#include "planner/io/model/measured_layers_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/io/model/pt2_weights.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/results/results.h"
#include "planner/io/tensors/checkpoint_file.h"
#include "planner/io/tensors/npy_header.h"
#include "planner/io/tensors/safetensors.h"
#include "planner/io/traces/profile_reader.h"
#include "planner/schedule_tool/certify.h"
#include "tests/fuzz/invariants.h"

namespace pfeife {
namespace {

using std::filesystem::path;

path written(const path& folder, const char* name, const std::string& text) {
  std::ofstream(folder / name, std::ios::binary) << text;
  return folder / name;
}

void read_pt2_input(const std::string& input, const path&) {
  const Graph graph = read_pt2_bytes(input, "fuzz.pt2");
  check_invariants(graph);
  if (graph.symbolic_batch) check_invariants(read_pt2_bytes(input, "fuzz.pt2", 3));
}

void read_weights_input(const std::string& input, const path& folder) {
  const path file = written(folder, "fuzz.pt2", input);
  const Pt2Weights weights = read_pt2_weights(file);
  for (const auto& [name, tensor] : weights.tensors) {
    PFEIFE_CHECK(tensor.storage < weights.storages.size());
    PFEIFE_CHECK(tensor.type.bytes() >= Bytes{0});
  }
  if (!weights.storages.empty() && weights.storages.front().bytes < (1u << 20))
    read_pt2_storage(file, weights.storages.front());
}

void read_table_input(const std::string& input, const path&) {
  check_invariants(layers_of_table({"fuzz.csv", input}, std::nullopt));
}

void read_layer_times_input(const std::string& input, const path& folder) {
  const MeasuredLayers layers = read_measured_layers(written(folder, "fuzz.csv", input));
  for (const MeasuredLayer& row : layers.rows)
    PFEIFE_CHECK(layers.find(row.setting) || !row.setting.precision.empty());
}

void read_skips_input(const std::string& input, const path&) {
  static const TextFile kTable{
      "table.csv",
      "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
      "temporary_bytes\na,1,1,1,1,1,1,1\nb,1,1,1,1,1,1,1\nc,1,1,1,1,1,1,1\n"};
  check_invariants(layers_of_table(kTable, TextFile{"fuzz.csv", input}));
}

void read_pipedream_input(const std::string& input, const path&) {
  check_invariants(layers_of_pipedream({"fuzz.txt", input}));
}

void read_piper_input(const std::string& input, const path&) {
  check_invariants(layers_of_piper({"fuzz.json", input}, std::chrono::seconds(1)));
}

void read_schedule_input(const std::string& input, const path&) {
  const bool old = input.size() % 2 == 1;  // either dialect for half of the inputs
  read_schedule(input, "fuzz.csv", old ? Dialect::Old : Dialect::Current);
}

void read_cluster_input(const std::string& input, const path&) {
  parse_cluster(input, "fuzz.yaml");
}

ExperimentRules experiment_rules() {
  return {.families = {"gpipe", "1f1b", "looped", "interleaved_1f1b"},
          .devices = [](const CaseConfig&) { return std::size_t{8}; },
          .ranks_and_microbatches =
              [](const PlanSettings&) {
                return std::pair{2, 6};
              }};
}

void read_experiment_input(const std::string& input, const path& folder) {
  for (const char* name : {"model.pt2", "cluster.yaml", "table.csv", "skips.csv"})
    if (!std::filesystem::exists(folder / name)) written(folder, name, "");
  for (const CaseConfig& config :
       read_experiment(written(folder, "fuzz.yaml", input), {}, experiment_rules()).cases)
    PFEIFE_CHECK(!resolved_text(config).empty());
}

void read_parallel_input(const std::string& input, const path& folder) {
  for (const auto& [from, to] : {std::pair("architectures/gpt2_large.yaml", "architecture.yaml"),
                                 {"clusters/3090_hosts.yaml", "cluster.yaml"}})
    if (!std::filesystem::exists(folder / to))
      std::filesystem::copy_file(std::string(PFEIFE_SOURCE_DIR "/configs/") + from, folder / to);
  if (const auto config =
          read_parallel(written(folder, "fuzz.yaml", input), {}, experiment_rules()))
    PFEIFE_CHECK(!pipeline_config(*config, config->asked.mesh->question.run).empty());
}

void read_plan_input(const std::string& input, const path& folder) {
  if (!std::filesystem::exists(folder / "schedule.csv"))
    std::filesystem::copy_file(PFEIFE_SOURCE_DIR "/tests/fuzz/seeds/plan_schedule.csv",
                               folder / "schedule.csv");
  read_plan(written(folder, "plan.yaml", input));
}

/// Under a digest that makes it look sound, it is judged, too.
void judge_certificate_input(const std::string& input, const path&) {
  const std::size_t end = input.find('\n');
  if (end == std::string::npos || end < 64) throw ConfigError({}, "no first line");
  const std::string body = input.substr(end + 1);
  tool::certify(
      read_certificate_text(input.substr(0, end - 64) + sha256(body) + "\n" + body, "fuzz"), 1);
}

void read_record_input(const std::string& input, const path&) {
  const auto record = case_from_json(input);
  if (!record) throw ConfigError({}, "is no record");  // so that the seed has to be one
  PFEIFE_CHECK(case_from_json(to_json(*record)).has_value());
}

void read_safetensors_input(const std::string& input, const path& folder) {
  const path file = written(folder, "fuzz.safetensors", input);
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : read_safetensors_header(file).entries) {
    check_in_file(entry.dtype, entry.sizes, entry.begin, entry.bytes, input.size());
    PFEIFE_CHECK(entry.begin >= end, "tensors overlap");
    end = entry.begin + entry.bytes;
  }
}

/// The input is the header alone; what goes around it is right, with the seed's 40 bytes of
/// tensors.
void read_safetensors_header_input(const std::string& input, const path& folder) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(input.size() >> (8 * i) & 0xff);
  read_safetensors_input(bytes + input + std::string(40, '\0'), folder);
}

void read_npy_input(const std::string& input, const path& folder) {
  const NpyHeader header = read_npy_header(written(folder, "fuzz.npy", input));
  check_in_file(header.dtype, header.sizes, header.begin, header.bytes, input.size());
}

void read_checkpoint_input(const std::string& input, const path& folder) {
  const CheckpointInfo info = read_checkpoint_info(written(folder, "fuzz.json", input));
  const path again = written(folder, "again.json", checkpoint_text(info));
  PFEIFE_CHECK(read_checkpoint_info(again) == info);
}

void read_profile_input(const std::string& input, const path& folder) {
  for (const ObservedRank& rank : read_profile(written(folder, "rank0.json", input), 0))
    for (const ObservedAction& action : rank.actions) {
      PFEIFE_CHECK(action.start <= action.end);
      PFEIFE_CHECK(action.busy <= action.end - action.start);
    }
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> kTargets = {
      // name, kind, reader, seeds, iterations
      {"pt2",
       InputKind::Zip,
       read_pt2_input,
       {"configs/models/tiny_mlp.pt2", "tests/data/models/own_model.pt2",
        "tests/data/models/torch_saved.pt2"},
       600},
      {"pt2_weights",
       InputKind::Zip,
       read_weights_input,
       {"configs/models/tiny_mlp.pt2", "tests/data/models/torch_saved.pt2"},
       600},
      {"layer_table", InputKind::Text, read_table_input, {"tests/fuzz/seeds/layers.csv"}, 10000},
      {"layer_times",
       InputKind::Text,
       read_layer_times_input,
       {"tests/fuzz/seeds/layer_times.csv"},
       5000},
      {"skips", InputKind::Text, read_skips_input, {"tests/fuzz/seeds/skips.csv"}, 10000},
      {"pipedream",
       InputKind::Text,
       read_pipedream_input,
       {"configs/profiles/pipedream/gnmt.graph.txt",
        "configs/profiles/pipedream/alexnet.graph.txt"},
       4000},
      {"piper", InputKind::Json, read_piper_input, {"tests/fuzz/seeds/piper.json"}, 3000},
      {"schedule", InputKind::Text, read_schedule_input, {"tests/fuzz/seeds/schedule.csv"}, 10000},
      {"cluster",
       InputKind::Text,
       read_cluster_input,
       {"configs/clusters/3090_x8.yaml", "configs/clusters/a100_4x8.yaml"},
       800},
      {"experiment",
       InputKind::Text,
       read_experiment_input,
       {"tests/fuzz/seeds/experiment.yaml"},
       800},
      {"parallel", InputKind::Text, read_parallel_input, {"tests/fuzz/seeds/parallel.yaml"}, 800},
      {"plan", InputKind::Text, read_plan_input, {"tests/fuzz/seeds/plan.yaml"}, 800},
      {"certificate",
       InputKind::Text,
       judge_certificate_input,
       {"tests/fuzz/seeds/certificate.txt", "tests/fuzz/seeds/certificate_any_order.txt",
        "tests/fuzz/seeds/certificate_zero_bubble.txt"},
       50000},
      {"case_record", InputKind::Json, read_record_input, {"tests/fuzz/seeds/record.json"}, 1500},
      {"safetensors",
       InputKind::Text,
       read_safetensors_input,
       {"tests/fuzz/seeds/tensors.safetensors"},
       1500},
      {"safetensors_header",
       InputKind::Json,
       read_safetensors_header_input,
       {"tests/fuzz/seeds/safetensors_header.json"},
       1500},
      {"npy", InputKind::Text, read_npy_input, {"tests/fuzz/seeds/array.npy"}, 2000},
      {"checkpoint",
       InputKind::Json,
       read_checkpoint_input,
       {"tests/fuzz/seeds/checkpoint.json"},
       1000},
      {"profile", InputKind::Json, read_profile_input, {"tests/fuzz/seeds/profile.json"}, 3000},
  };
  return kTargets;
}

void fuzz_one(const FuzzTarget& target, const std::string& input, const path& folder) {
  try {
    target.read(input, folder);
  } catch (const ConfigError&) {
    return;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: threw something else than ConfigError: %s\n", target.name.c_str(),
                 error.what());
    std::abort();
  }
}

}  // namespace pfeife
