#include "planner/io/experiment/parallel_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/cluster/mesh_file.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/text_file.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/measured_layers_file.h"
#include "planner/io/model/training_yaml.h"
#include "planner/ir/request/pipeline.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 30;
constexpr const char* kMeshFile = "mesh/mesh.yaml";
constexpr const char* kMeshCluster = "mesh/cluster.yaml";
bool is_search(const YamlNode& node) { return node.is_scalar() && node.as_string() == "search"; }

/// `search`, which leaves `open`, or a number or a list of numbers.
template <std::integral Number>
Kind<std::vector<Number>> sizes(Number least, Number most, const std::vector<Number>& open) {
  Kind<std::vector<Number>> kind = list_of(whole<Number>(least, most));
  kind.values = "`search`, a number, or a list";
  kind.schema = either_schema({words_schema({"search"}), kind.schema});
  kind.read = [read = kind.read, open](const YamlNode& node) {
    if (is_search(node)) return open;
    const std::vector<Number> found = read(node);
    if (found.empty()) node.fail("expected search, a number, or a list of numbers");
    return found;
  };
  kind.value = [list = kind.value, open](const std::vector<Number>& of) {
    return of == open ? yaml_scalar("search") : of.size() == 1 ? list(of).items.front() : list(of);
  };
  return kind;
}

Kind<std::vector<Recompute>> recomputation(const std::vector<Recompute>& all) {
  Kind<std::vector<Recompute>> kind = list_of(word(words_of<Recompute>(
      {Recompute::None, Recompute::Attention, Recompute::Selective, Recompute::Full})));
  kind.values += ", a list, or `search`";
  kind.read = [read = kind.read, all](const YamlNode& node) {
    return is_search(node) ? all : read(node);
  };
  kind.value = [](const auto&) { return yaml_scalar("search"); };
  kind.schema = either_schema({words_schema({"search"}), kind.schema});
  return kind;
}

Kind<std::vector<Module>> modules_or_search() {
  Kind<std::vector<Module>> kind = module_list();
  kind.values += ", a list, or `search`";
  kind.read = [read = kind.read](const YamlNode& node) {
    return is_search(node) ? std::vector<Module>{} : read(node);
  };
  kind.schema = either_schema({words_schema({"search"}), kind.schema});
  kind.value = [value = kind.value](const std::vector<Module>& modules) {
    return modules.empty() ? yaml_scalar("search") : value(modules);
  };
  return kind;
}

/// Fields of the run that no search changes.
template <class T>
Field<MeshQuestion> of_run(std::string key, T MeshRun::*member, Kind<T> kind, std::string about) {
  return of_part(&MeshQuestion::run,
                 field(std::move(key), member, std::move(kind), std::move(about)));
}

/// `model`, if it is more than the architecture's file.
struct MeshModel {
  std::filesystem::path file;
  MeasuredLayers times;
  std::optional<MeasuredPeak> peak;
};

FieldList<MeasuredPeak> peak_fields() {
  using Peak = MeasuredPeak;
  const auto size = [](const char* key, std::int64_t Peak::*member, std::string about) {
    return field(key, member, whole<std::int64_t>(1, kMost), std::move(about));
  };
  return {field("memory", &Peak::bytes, memory(),
                "what its fullest rank had allocated: `torch.cuda.max_memory_allocated()`")
              .needed(),
          size("tp", &Peak::tp, "of that run"),
          size("cp", &Peak::cp, "of that run"),
          size("pp", &Peak::pp, "of that run"),
          size("dp", &Peak::dp, "of that run"),
          size("ep", &Peak::ep, "of that run"),
          size("microbatch_size", &Peak::microbatch_size, "of that run"),
          size("global_batch", &Peak::global_batch, "of that run")
              .by_default("`training.global_batch`"),
          size("stages_per_rank", &Peak::stages_per_rank, "of that run"),
          field("zero", &Peak::zero, whole<int>(0, 3), "of that run"),
          field("recompute", &Peak::recomputation,
                word(words_of<Recompute>({Recompute::None, Recompute::Attention, Recompute::Full})),
                "of that run")};
}

FieldList<MeshModel> mesh_model_fields(const ListContext& context) {
  return {Field<MeshModel>{"file", "a file", "the architecture",
                           [&context](const YamlNode& node, MeshModel& model) {
                             model.file =
                                 input_file(node, *context.folder, "model", *context.config);
                           },
                           [](const MeshModel& model) { return path_value(model.file); }}
              .needed()
              .with_schema(kTextSchema),
          Field<MeshModel>{"times", "a file of layer times",
                           "in place of the roofline; meshes that it lacks are left out",
                           [&context](const YamlNode& node, MeshModel& model) {
                             model.times = read_measured_layers(
                                 input_file(node, *context.folder, "model.times", *context.config),
                                 node.as_string());
                           },
                           [](const MeshModel&) { return YamlValue{}; }}
              .by_default("none")
              .with_schema(kTextSchema),
          field("measured_peak", &MeshModel::peak, map_of(peak_fields()),
                "the memory of a run that was measured: [what the formula lacks](#measured-memory)")
              .by_default("none")};
}

/// The node of the architecture's file.
std::optional<YamlNode> architecture_node(const YamlNode& root) {
  const auto model = root.find("model");
  return model && model->is_map() ? model->find("file") : model;
}

/// The part of a config that says which mesh.
const FieldList<MeshQuestion>& mesh_config_fields() {
  const auto read_elsewhere = [](const char* key, std::string schema,
                                 std::vector<std::string> keys = {}) {
    return Field<MeshQuestion>{
        key, "", "", [](const YamlNode&, MeshQuestion&) {}, {}, false, std::move(keys)}
        .needed()
        .with_schema(std::move(schema));
  };
  static const ListContext none;
  static const FieldList<MeshQuestion> fields = {
      version_field<MeshQuestion>(1),
      read_elsewhere("model", either_schema({kTextSchema, mesh_model_fields(none).schema()}),
                     mesh_model_fields(none).keys()),
      read_elsewhere("cluster", experiment_keys().find("cluster")->schema),
      group("training", mesh_training_fields()).needed(),
      group("parallel", mesh_fields()).needed()};
  return fields;
}

/// A model that is no architecture: nothing is said but how often its own pipeline runs.
bool replicas_alone(const YamlNode& root) {
  const auto model = architecture_node(root);
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
  if (config.plan.searched()) {
    const ListContext context{&folder, &rules, &config};
    experiment_fields(context).only(pipeline_keys()).read_known(root, config);
  }
  for (const char* key : {"plan.families", "plan.stages_per_rank", "plan.recompute", "baselines"})
    if (config.places.contains(key)) config.mesh->given.insert(key);
  config.mesh->question = mesh_question(config);
}

}  // namespace

const FieldList<MeshQuestion>& mesh_training_fields() {
  using Question = MeshQuestion;
  static const FieldList<MeshQuestion> fields = {
      of_run("global_batch", &MeshRun::global_batch, whole<std::int64_t>(1, 1 << 20),
             "sequences a step")
          .needed(),
      field("microbatch_size", &Question::microbatch_size, sizes<std::int64_t>(1, kMost, {}),
            "sequences of a microbatch of one replica"),
      of_run("optimizer", &MeshRun::optimizer, optimizer_kind(), "state, time")
          .with_values("an [optimizer](optimizers.md)"),
      of_part(&Question::run, of_part(&MeshRun::architecture,
                                      field("sequence", &Architecture::sequence,
                                            whole<std::int64_t>(1, kMost), "tokens of a sequence")))
          .by_default("the architecture's")};
  return fields;
}

const FieldList<MeshQuestion>& mesh_fields() {
  using Question = MeshQuestion;
  const auto size = [](const char* key, std::vector<std::int64_t> Question::*member,
                       std::string about) {
    return field(key, member, sizes<std::int64_t>(1, kMost, {}), std::move(about));
  };
  const Question open;
  static const FieldList<MeshQuestion> fields = {
      field("devices", &Question::devices, whole<std::int64_t>(1, 1 << 20),
            "how many, over all hosts; of a list, a row each")
          .needed()
          .with_schema(list_schema(range_schema(true, 1, 1 << 20))),
      size("tp", &Question::tp,
           "tensor parallelism; `search`: all sizes that divide. `devices` is the product of `tp`, "
           "`cp`, `pp` and `dp`"),
      size("cp", &Question::cp, "context parallelism; needs fused attention"),
      size("pp", &Question::pp, "pipeline parallelism"),
      size("dp", &Question::dp, "data parallelism"),
      size("ep", &Question::ep,
           "over how many replicas the experts are divided, of a model that has them"),
      field("zero", &Question::zero, sizes<int>(0, 3, open.zero),
            "what the replicas divide: [ZeRO](#zero). `search` takes 0, 1 and 3"),
      field("recompute", &Question::recomputation, recomputation(open.recomputation),
            "`full`: each layer keeps its input alone; `search` leaves out `selective`"),
      field("recompute_modules", &Question::modules, modules_or_search(),
            "that `selective` recomputes; `search`: some sets")
          .with_values("[modules](recomputation.md#modules-of-a-layer), or `search`"),
      field("stages_per_rank", &Question::stages_per_rank,
            sizes<std::int64_t>(1, 64, open.stages_per_rank),
            "V of interleaved pipelines to try; `search`: 1, 2 and 4"),
      of_run("sequence_parallel", &MeshRun::sequence_parallel, flag(),
             "norms and dropout on parts of the sequence where `tp` is above 1"),
      of_part(&Question::run, of_part(&MeshRun::mesh, field("order", &Mesh::order, axis_order(),
                                                            "axes, neighbouring devices first"))),
      of_part(&Question::run,
              mesh_precision_field("of parameters and activations, with fp32 masters; or a "
                                   "[format](formats.md)")),
      of_run("kernels", &MeshRun::kernels, rank_kernels(),
             "besides products and attention: PyTorch's, or [Megatron-LM's](formats.md#kernels)"),
      of_run("gradient_bytes", &MeshRun::gradient_bytes, whole<std::int64_t>(2, 4),
             "an element, as gradients are reduced"),
      of_run("scatter_gather", &MeshRun::scatter_gather, flag(),
             "without `sequence_parallel`, a message between hosts goes in `tp` parts, gathered "
             "where they arrive, as Megatron-LM does; `false`: each of the `tp` ranks sends all of "
             "it"),
      of_run("overlap_reductions", &MeshRun::overlap_reductions, flag(),
             "with ZeRO 0 to 2, a layer's gradients are reduced over the replicas beside the last "
             "backward of the layers before it, as DDP does, and of the rank's other stages; "
             "`false`: all of a rank's behind its last backward"),
      of_run(
          "dispatch", &MeshRun::once_a_host,
          word<bool>({{"all_to_all", false}, {"once_a_host", true}}),
          "with `ep`, what is sent: a copy of a token for each of its experts, or one a host and "
          "device that has some (DeepEP)"),
      of_run("expert_products", &MeshRun::separate_experts,
             word<bool>({{"grouped", false}, {"separate", true}}),
             "a kernel for a rank's experts, or one each, four at a time (Transformer Engine)"),
      of_run("overlap_factor", &MeshRun::overlap_factor, real(1, 4),
             "what collectives take of the device: [actions side by side](overlap.md)"),
      of_run("overlap", &MeshRun::overlap_streams, word<bool>({{"sums", false}, {"streams", true}}),
             "[how pairs of actions are priced](overlap.md)"),
      of_run("expert_imbalance", &MeshRun::expert_imbalance, real(1, 1024),
             "[tokens of the fullest rank](overlap.md#imbalance) of experts over the mean")};
  return fields;
}

static std::string config_schema(const ExperimentRules& rules) {
  const std::filesystem::path folder;
  const ListContext context{&folder, &rules, nullptr};
  const FieldList<Request> pipeline = experiment_fields(context);
  std::vector<SchemaEntry> mesh = mesh_config_fields().schema_entries();
  for (SchemaEntry& entry : pipeline.only(pipeline_keys()).schema_entries())
    mesh.push_back(std::move(entry));
  return either_schema({pipeline.schema(), map_schema(mesh)});
}

std::string json_schema(const std::string& kind, const ExperimentRules& rules) {
  const std::string text = kind == "config"         ? config_schema(rules)
                           : kind == "cluster"      ? cluster_fields().schema()
                           : kind == "architecture" ? architecture_fields().schema()
                                                    : "";
  if (text.empty()) return text;
  nlohmann::ordered_json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                {"title", "Pfeife: " + kind}};
  schema.update(nlohmann::ordered_json::parse(text));
  return schema.dump(2) + "\n";
}

std::vector<FieldRow> mesh_model_rows() {
  const ListContext none;
  std::vector<FieldRow> rows = mesh_model_fields(none).rows("model.");
  for (FieldRow& row : peak_fields().rows("model.measured_peak.")) rows.push_back(std::move(row));
  return rows;
}

std::vector<std::int64_t> listed_devices(const std::filesystem::path& file,
                                         const std::vector<std::string>& settings) {
  YamlDocument document = YamlDocument::read(file);
  if (!document.root().is_map() || !document.root().find("parallel")) return {};
  set_keys(document, settings);
  const YamlNode parallel = document.root().at("parallel");
  const auto devices = parallel.is_map() ? parallel.find("devices") : std::nullopt;
  std::vector<std::int64_t> listed;
  if (!devices || !devices->is_sequence()) return listed;
  for (const YamlNode& item : devices->items()) listed.push_back(item.as_int(1, 1 << 20));
  if (listed.empty()) devices->fail("expected a number, or a list such as [8, 16, 64]");
  return listed;
}

std::optional<ParallelConfig> read_parallel(const std::filesystem::path& file,
                                            const std::vector<std::string>& settings,
                                            const ExperimentRules& rules) {
  YamlDocument document = YamlDocument::read(file);
  if (!document.root().is_map() || !document.root().find("parallel")) return std::nullopt;
  set_keys(document, settings);
  const YamlNode root = document.root();
  if (replicas_alone(root)) return std::nullopt;
  root.check_version(1);
  ParallelConfig config;
  config.name = folder_name(file.stem().string());
  CaseConfig& request = config.asked;
  add_places(root, request.places);
  const std::filesystem::path folder = file.parent_path();
  MeshModel of_model;
  const ListContext context{&folder, &rules, &request};
  if (root.at("model").is_map())
    mesh_model_fields(context).read(root.at("model"), of_model);
  else
    of_model.file = input_file(root.at("model"), folder, "model", request);
  const std::filesystem::path& model = of_model.file;
  if (!is_architecture(model))
    root.at("model").fail(
        "a mesh is chosen for an architecture file (configs/architectures, or a model's "
        "config.json "
        "of Hugging Face), not for \"" +
        request.file_names.at("model") +
        "\"; name one, or give only dp, zero and overlap_reductions: how often the model's own "
        "pipeline runs beside itself");
  request.model.format = ModelFormat::Mesh;
  MeshSettings& mesh = request.mesh.emplace();
  const FieldList<MeshQuestion>& mesh_keys = mesh_config_fields();
  check_sections(root,
                 joined(sections(mesh_keys), sections(experiment_keys().only(pipeline_keys()))));
  mesh.question.run.architecture = read_architecture(model);
  config.architecture = read_text_file(model).text;
  read_cluster_input(root.at("cluster"), context);
  if (request.cluster_measured)
    root.at("cluster").fail(
        "a mesh needs a cluster file, configs/clusters has some; found measure");
  mesh.network = read_network(request.cluster, request.cluster_set);
  config.hosts = cluster_text(request.cluster, request.cluster_set);
  mesh.network.measured_layers = std::move(of_model.times);
  mesh.question.measured_peak = of_model.peak;
  mesh_keys.read_known(root, mesh.question);
  read_pipeline(root, folder, rules, request);
  with_places(request, [&] { check(request); });
  config.step_below = read_step_below(root);
  if (const auto figures = root.find("figures")) config.figures = read_figures(*figures);
  std::vector<YamlEntry> rest;
  for (const std::string& key : pipeline_keys())
    if (const auto node = root.find(key)) rest.push_back({key, node->value(), {}});
  config.rest = yaml_map(std::move(rest));
  return config;
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
  return {config.name, {std::move(pipeline)}, config.step_below, config.figures};
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
                 {"optimizer", optimizer_kind().value(pipeline.training.optimizer), {}},
                 {"microbatch_size", number(*pipeline.training.microbatch_size), {}}}),
       {}},
      {"cases",
       yaml_map({{"devices", count(pipeline.devices), {}},
                 {"microbatches", count(pipeline.microbatches), {}}}),
       {}}};
  YamlValue rest = config.rest;
  if (!find_entry(rest, "plan")) rest.entries.push_back({"plan", yaml_map({}), {}});
  for (YamlEntry& entry : rest.entries) {
    if (entry.key != "plan") continue;
    const auto otherwise = [&](const std::string& key, YamlValue value) {
      if (!find_entry(entry.value, key)) entry.value.entries.push_back({key, std::move(value), {}});
    };
    const ListContext none;
    const FieldList<PlanSettings> fields = plan_fields(none);
    for (const char* key : {"families", "stages_per_rank", "recompute"})
      if (!pipeline.plan.reference || std::string_view(key) == "stages_per_rank")
        otherwise(key, fields.find(key)->value(pipeline.plan));
  }
  if (!find_entry(rest, "baselines"))
    rest.entries.push_back({"baselines", list_value(pipeline.baselines, baseline_value), {}});
  entries.insert(entries.end(), rest.entries.begin(), rest.entries.end());
  return to_text(yaml_map(std::move(entries)));
}

}  // namespace pfeife
