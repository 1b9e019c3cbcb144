#include "planner/io/experiment/parallel_config.h"

#include <algorithm>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/text_file.h"
#include "planner/io/files/yaml_document.h"
#include "planner/io/model/architecture_reader.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;
/// Keys that the pipeline's own experiment has, too.
const std::vector<std::string> kOfPipeline = {"plan",    "baselines", "simulation",
                                              "engines", "select_by", "step_below"};

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
  question.cp = question.ep = {1};
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
  run.sequence_parallel = true;
  if (const auto parallel = node.find("sequence_parallel"))
    run.sequence_parallel = parallel->as_bool();
  run.scatter_gather = true;
  if (const auto scatter = node.find("scatter_gather")) run.scatter_gather = scatter->as_bool();
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  if (const auto order = node.find("order")) read_order(*order, run.mesh);
  run.type = DType::BFloat16;
  if (const auto precision = node.find("precision"))
    run.type = precision->as_one_of<DType>({{"bf16", DType::BFloat16}, {"fp16", DType::Float16}});
  if (const auto bytes = node.find("gradient_bytes")) run.gradient_bytes = bytes->as_int(2, 4);
  run.overlap_reductions = true;
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

/// Refuses more devices than a host has where nothing connects hosts.
void check_hosts(const ParallelConfig& made, const YamlNode& parallel, const std::string& cluster) {
  const MeshQuestion& question = made.question;
  const std::int64_t in_host = made.network.devices_per_host;
  if (question.devices <= in_host || made.network.nic.value > 0) return;
  const auto divides = [&](Axis axis) {
    const auto& sizes = axis == Axis::Tensor     ? question.tp
                        : axis == Axis::Context  ? question.cp
                        : axis == Axis::Pipeline ? question.pp
                                                 : question.dp;
    return sizes != std::vector<std::int64_t>{1};
  };
  const auto& order = question.run.mesh.order;
  const auto outer = std::find_if(order.rbegin(), order.rend(), divides);
  parallel.at("devices").fail(
      std::to_string(question.devices) + " devices are more than the " + std::to_string(in_host) +
      " of a host, and no link joins hosts, which " +
      to_string(outer == order.rend() ? order.back() : *outer) +
      ", the outermost axis, reaches over; add a line such as `between_hosts: {bandwidth: 25 "
      "GB/s, latency: 20 us}` to \"" +
      cluster + "\", or ask for at most " + std::to_string(in_host));
}

/// Of a model that is no architecture: nothing but how often its own pipeline runs.
bool replicas_alone(const YamlNode& root) {
  const auto model = root.find("model");
  const YamlNode parallel = root.at("parallel");
  const bool architecture = model && model->is_scalar() && model->as_string().ends_with(".yaml");
  if (architecture || !parallel.is_map()) return false;
  return std::ranges::all_of(parallel.entries(), [](const auto& entry) {
    return entry.first == "dp" || entry.first == "zero" || entry.first == "overlap_reductions";
  });
}

/// What can be said of the pipeline's keys before there is one.
void check_pipeline(const YamlNode& root, const std::filesystem::path& folder,
                    const ExperimentRules& rules) {
  if (const auto plan = root.find("plan")) {
    for (const char* key : {"file", "schedule"})
      if (plan->is_map() && plan->find(key))
        plan->at(key).fail(
            "the mesh is chosen first; leave this out, and set it in the pipeline's own config, "
            "results/NAME/NAME.yaml");
    plan_settings(*plan, folder, rules);
  }
  if (const auto baselines = root.find("baselines")) baseline_settings(*baselines, rules.families);
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
  made.where = root.at("parallel").where();
  const InputFile model = input_file(root.at("model"), file.parent_path());
  if (model.path.extension() != ".yaml")
    root.at("model").fail(
        "a mesh is chosen for an architecture file (configs/architectures), not "
        "for \"" +
        model.written +
        "\"; name one, or give only dp, zero and overlap_reductions: how often the model's own "
        "pipeline runs beside itself");
  std::vector<std::string> keys = {"version", "model", "cluster", "training", "parallel"};
  keys.insert(keys.end(), kOfPipeline.begin(), kOfPipeline.end());
  root.check_keys(keys);
  made.question.run.architecture = read_architecture(model.path);
  made.architecture = read_text_file(model.path).text;
  const InputFile cluster = cluster_input(root.at("cluster"), file.parent_path());
  if (cluster.measured)
    root.at("cluster").fail(
        "a mesh needs a cluster file, configs/clusters has some; found measure");
  made.network = read_network(cluster.path, cluster.replaced);
  made.hosts = cluster_text(cluster.path, cluster.replaced);
  read_parallel_key(root.at("parallel"), made.question);
  check_hosts(made, root.at("parallel"), cluster.written);
  read_batch(root, made.question);
  check_pipeline(root, file.parent_path(), rules);
  std::vector<YamlEntry> rest;
  for (const std::string& key : kOfPipeline)
    if (const auto node = root.find(key)) rest.push_back({key, node->value(), {}});
  made.rest = yaml_map(std::move(rest));
  return made;
}

std::string pipeline_config(const ParallelConfig& config, const MeshRun& run) {
  const auto number = [](std::int64_t value) { return yaml_scalar(std::to_string(value)); };
  std::vector<YamlEntry> entries = {
      {"version", number(1), {}},
      {"model",
       yaml_map({{"file", yaml_scalar("mesh/mesh.yaml"), {}}, {"format", yaml_scalar("mesh"), {}}}),
       {}},
      {"cluster", yaml_scalar("mesh/cluster.yaml"), {}},
      {"training",
       yaml_map(
           {{"precision", yaml_scalar(run.type == DType::BFloat16 ? "bf16_amp" : "fp16_amp"), {}},
            {"microbatch_size", number(run.microbatch_size * run.mesh.size(Axis::Data)), {}}}),
       {}},
      {"cases",
       yaml_map({{"devices", number(run.mesh.size(Axis::Pipeline)), {}},
                 {"microbatches", number(run.microbatches()), {}}}),
       {}}};
  YamlValue rest = config.rest;
  const char* recompute = run.recomputation == Recompute::None        ? "none"
                          : run.recomputation == Recompute::Attention ? "attention"
                                                                      : "blocks";
  if (!find_entry(rest, "plan")) rest.entries.push_back({"plan", yaml_map({}), {}});
  std::vector<YamlValue> families = {yaml_scalar("1f1b"), yaml_scalar("zb_greedy")};
  std::vector<YamlValue> stages = {number(1)};
  if (run.stages_per_rank > 1) {
    families.push_back(yaml_scalar("interleaved_1f1b"));
    stages.push_back(number(run.stages_per_rank));
  }
  for (YamlEntry& entry : rest.entries) {
    if (entry.key != "plan") continue;
    const auto otherwise = [&](const std::string& key, YamlValue value) {
      if (!find_entry(entry.value, key)) entry.value.entries.push_back({key, std::move(value), {}});
    };
    otherwise("families", yaml_sequence(std::move(families)));
    otherwise("stages_per_rank", yaml_sequence(std::move(stages)));
    otherwise("recompute", yaml_scalar(recompute));
  }
  if (!find_entry(rest, "baselines"))
    rest.entries.push_back({"baselines", yaml_sequence({yaml_scalar("1f1b")}), {}});
  entries.insert(entries.end(), rest.entries.begin(), rest.entries.end());
  return to_text(yaml_map(std::move(entries)));
}

}  // namespace pfeife
