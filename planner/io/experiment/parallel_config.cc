#include "planner/io/experiment/parallel_config.h"

#include <algorithm>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/text_file.h"
#include "planner/io/files/yaml_document.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/request/pipeline.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;
constexpr const char* kMeshFile = "mesh/mesh.yaml";
constexpr const char* kMeshCluster = "mesh/cluster.yaml";
/// Keys that the pipeline's own experiment has, too.
const std::vector<std::string> kOfPipeline = {"plan",    "baselines", "simulation",
                                              "engines", "select_by", "step_below"};

bool is_architecture(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".json";
}

bool is_search(const YamlNode& node) { return node.is_scalar() && node.as_string() == "search"; }

/// `search`, a number, or a list of numbers; without the key `otherwise`.
template <class Number>
void read_sizes(const YamlNode& parent, const std::string& key, Number least, Number most,
                const std::vector<Number>& open, std::vector<Number>& sizes) {
  const auto node = parent.find(key);
  if (!node) return;
  if (is_search(*node)) {
    sizes = open;
    return;
  }
  sizes.clear();
  for (const YamlNode& item : node->items_or_self())
    sizes.push_back(static_cast<Number>(item.as_int(least, most)));
  if (sizes.empty()) node->fail("expected search, a number, or a list of numbers");
}

void read_recomputation(const YamlNode& node, MeshQuestion& question) {
  if (is_search(node)) return;
  question.recomputation.clear();
  for (const YamlNode& item : node.items_or_self())
    question.recomputation.push_back(item.as_one_of<Recompute>({{"none", Recompute::None},
                                                                {"attention", Recompute::Attention},
                                                                {"full", Recompute::Full}}));
}

void read_order(const YamlNode& node, Mesh& mesh) {
  std::vector<std::pair<std::string, Axis>> axes;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    axes.emplace_back(to_string(axis), axis);
  const std::vector<YamlNode> items = node.items();
  if (items.size() != kAxes)
    node.fail("expected the four axes, neighbours first: [tp, cp, dp, pp]");
  for (std::size_t i = 0; i < kAxes; ++i) {
    mesh.order[i] = items[i].as_one_of<Axis>(axes);
    if (std::find(mesh.order.begin(), mesh.order.begin() + static_cast<std::ptrdiff_t>(i),
                  mesh.order[i]) != mesh.order.begin() + static_cast<std::ptrdiff_t>(i))
      items[i].fail(to_string(mesh.order[i]) + " stands twice; each of tp, cp, dp and pp once");
  }
}

void read_parallel_key(const YamlNode& node, MeshQuestion& question) {
  node.check_keys({"devices", "tp", "cp", "pp", "dp", "ep", "zero", "recompute", "stages_per_rank",
                   "sequence_parallel", "order", "precision", "gradient_bytes", "scatter_gather",
                   "overlap_reductions", "overlap_factor"});
  MeshRun& run = question.run;
  question.devices = node.at("devices").as_int(1, 1 << 20);
  const std::vector<std::int64_t> any;
  read_sizes<std::int64_t>(node, "tp", 1, kMost, any, question.tp);
  read_sizes<std::int64_t>(node, "cp", 1, kMost, any, question.cp);
  read_sizes<std::int64_t>(node, "pp", 1, kMost, any, question.pp);
  read_sizes<std::int64_t>(node, "dp", 1, kMost, any, question.dp);
  read_sizes<std::int64_t>(node, "ep", 1, kMost, any, question.ep);
  read_sizes<std::int64_t>(node, "stages_per_rank", 1, 64, question.stages_per_rank,
                           question.stages_per_rank);
  read_sizes<int>(node, "zero", 0, 3, question.zero, question.zero);
  if (const auto recompute = node.find("recompute")) read_recomputation(*recompute, question);
  if (const auto parallel = node.find("sequence_parallel"))
    run.sequence_parallel = parallel->as_bool();
  if (const auto scatter = node.find("scatter_gather")) run.scatter_gather = scatter->as_bool();
  if (const auto order = node.find("order")) read_order(*order, run.mesh);
  if (const auto precision = node.find("precision"))
    run.type = precision->as_one_of<DType>({{"bf16", DType::BFloat16}, {"fp16", DType::Float16}});
  if (const auto bytes = node.find("gradient_bytes")) run.gradient_bytes = bytes->as_int(2, 4);
  if (const auto overlap = node.find("overlap_reductions"))
    run.overlap_reductions = overlap->as_bool();
  if (const auto factor = node.find("overlap_factor")) run.overlap_factor = factor->as_double(1, 4);
}

void read_batch(const YamlNode& root, MeshQuestion& question) {
  const YamlNode training = root.at("training");
  training.check_keys({"global_batch", "microbatch_size", "sequence"});
  question.run.global_batch = training.at("global_batch").as_int(1, 1 << 20);
  read_sizes<std::int64_t>(training, "microbatch_size", 1, kMost, {}, question.microbatch_size);
  if (const auto sequence = training.find("sequence"))
    question.run.architecture.sequence = sequence->as_int(1, kMost);
}

/// Of a model that is no architecture: nothing but how often its own pipeline runs.
bool replicas_alone(const YamlNode& root) {
  const auto model = root.find("model");
  const YamlNode parallel = root.at("parallel");
  const bool architecture = model && model->is_scalar() && is_architecture(model->as_string());
  if (architecture || !parallel.is_map()) return false;
  return std::ranges::all_of(parallel.entries(), [](const auto& entry) {
    return entry.first == "dp" || entry.first == "zero" || entry.first == "overlap_reductions";
  });
}

/// What is asked of the pipeline, and which of its keys are there.
void read_pipeline(const YamlNode& root, const std::filesystem::path& folder,
                   const ExperimentRules& rules, CaseConfig& config) {
  const auto plan = root.find("plan");
  if (plan && plan->is_map()) {
    if (const auto file = plan->find("file")) config.plan.file = file->as_string();
    if (const auto schedule = plan->find("schedule")) config.plan.schedule = schedule->as_string();
  }
  if (config.plan.searched()) read_pipeline_keys(root, folder, rules, config);
  for (const char* key : {"plan.families", "plan.stages_per_rank", "plan.recompute", "baselines"})
    if (config.places.contains(key)) config.mesh->given.insert(key);
}

}  // namespace

std::optional<ParallelConfig> read_parallel(const std::filesystem::path& file,
                                            const std::vector<std::string>& settings,
                                            const ExperimentRules& rules) {
  YamlDocument document = YamlDocument::read(file);
  if (!document.root().is_map() || !document.root().find("parallel")) return std::nullopt;
  set_keys(document, settings);
  const YamlNode root = document.root();
  if (replicas_alone(root)) return std::nullopt;
  root.check_version(1);
  ParallelConfig made;
  made.name = folder_name(file.stem().string());
  CaseConfig& asked = made.asked;
  add_places(root, asked.places);
  const std::filesystem::path folder = file.parent_path();
  const std::filesystem::path model = input_file(root.at("model"), folder, "model", asked);
  if (!is_architecture(model))
    root.at("model").fail(
        "a mesh is chosen for an architecture file (configs/architectures, or a model's "
        "config.json "
        "of Hugging Face), not for \"" +
        asked.file_names.at("model") +
        "\"; name one, or give only dp, zero and overlap_reductions: how often the model's own "
        "pipeline runs beside itself");
  std::vector<std::string> keys = {"version", "model", "cluster", "training", "parallel"};
  keys.insert(keys.end(), kOfPipeline.begin(), kOfPipeline.end());
  root.check_keys(keys);
  asked.model.format = ModelFormat::Mesh;
  MeshSettings& mesh = asked.mesh.emplace();
  mesh.question.run.architecture = read_architecture(model);
  made.architecture = read_text_file(model).text;
  read_cluster_input(root.at("cluster"), folder, asked);
  if (asked.cluster_measured)
    root.at("cluster").fail(
        "a mesh needs a cluster file, configs/clusters has some; found measure");
  mesh.network = read_network(asked.cluster, asked.cluster_set);
  made.hosts = cluster_text(asked.cluster, asked.cluster_set);
  read_parallel_key(root.at("parallel"), mesh.question);
  read_batch(root, mesh.question);
  read_pipeline(root, folder, rules, asked);
  with_places(asked, [&] { check(asked); });
  made.step_below = read_step_below(root);
  std::vector<YamlEntry> rest;
  for (const std::string& key : kOfPipeline)
    if (const auto node = root.find(key)) rest.push_back({key, node->value(), {}});
  made.rest = yaml_map(std::move(rest));
  return made;
}

Experiment pipeline_experiment(const ParallelConfig& config, const MeshRun& run,
                               const std::filesystem::path& folder) {
  CaseConfig pipeline = config.asked;
  static_cast<Request&>(pipeline) = pipeline_request(config.asked, run);
  pipeline.model.file = (folder / kMeshFile).lexically_normal();
  pipeline.cluster = (folder / kMeshCluster).lexically_normal();
  pipeline.file_names = {{"model", kMeshFile}, {"cluster", kMeshCluster}};
  pipeline.cluster_set.clear();  // the files have the values
  pipeline.name = case_name({{"devices", std::to_string(pipeline.devices)},
                             {"microbatches", std::to_string(pipeline.microbatches)}});
  return {config.name, {std::move(pipeline)}, config.step_below};
}

std::string pipeline_config(const ParallelConfig& config, const MeshRun& run) {
  const Request pipeline = pipeline_request(config.asked, run);
  const auto number = [](std::int64_t value) { return yaml_scalar(std::to_string(value)); };
  const auto count = [](std::size_t value) { return yaml_scalar(std::to_string(value)); };
  std::vector<YamlEntry> entries = {
      {"version", number(1), {}},
      {"model",
       yaml_map({{"file", yaml_scalar(kMeshFile), {}},
                 {"format", yaml_scalar(to_string(pipeline.model.format)), {}}}),
       {}},
      {"cluster", yaml_scalar(kMeshCluster), {}},
      {"training",
       yaml_map({{"precision", yaml_scalar(to_string(pipeline.training.precision)), {}},
                 {"microbatch_size", number(*pipeline.training.microbatch_size), {}}}),
       {}},
      {"cases",
       yaml_map({{"devices", count(pipeline.devices), {}},
                 {"microbatches", count(pipeline.microbatches), {}}}),
       {}}};
  YamlValue rest = config.rest;
  if (!find_entry(rest, "plan")) rest.entries.push_back({"plan", yaml_map({}), {}});
  const auto list = [](const auto& values, const auto& text) {
    std::vector<YamlValue> items;
    for (const auto& value : values) items.push_back(yaml_scalar(text(value)));
    return yaml_sequence(std::move(items));
  };
  for (YamlEntry& entry : rest.entries) {
    if (entry.key != "plan") continue;
    const auto otherwise = [&](const std::string& key, YamlValue value) {
      if (!find_entry(entry.value, key)) entry.value.entries.push_back({key, std::move(value), {}});
    };
    if (!pipeline.plan.reference)
      otherwise("families",
                list(pipeline.plan.families, [](const std::string& name) { return name; }));
    otherwise("stages_per_rank", list(pipeline.plan.stages_per_rank,
                                      [](std::size_t stages) { return std::to_string(stages); }));
    if (!pipeline.plan.reference)
      otherwise("recompute", yaml_scalar(to_string(pipeline.plan.recompute)));
  }
  if (!find_entry(rest, "baselines"))
    rest.entries.push_back({"baselines", list(pipeline.baselines, baseline_text), {}});
  entries.insert(entries.end(), rest.entries.begin(), rest.entries.end());
  return to_text(yaml_map(std::move(entries)));
}

}  // namespace pfeife
