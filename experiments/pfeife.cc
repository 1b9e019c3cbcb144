#include "experiments/pfeife.h"

#include <deque>
#include <mutex>
#include <utility>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/case_drawings.h"
#include "experiments/plans/case_problem.h"
#include "experiments/plans/case_record.h"
#include "experiments/plans/covering_bound.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/plan_folder.h"
#include "experiments/plans/reasons.h"
#include "experiments/plans/simulated_choice.h"
#include "planner/cost/estimate/link_load.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/operators/table_effects.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/cluster/mesh_file.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/model/node_order.h"
#include "planner/ir/request/calibrated.h"
#include "planner/ir/request/pipeline.h"
#include "planner/mesh/mesh_search.h"
#include "planner/mesh/replicated_layers.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"
#include "planner/search/price/price.h"
#include "plots/report/report.h"
#include "plots/timeline/timeline.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

void must_exist(const std::filesystem::path& file) {
  if (!is_there(file)) throw ConfigError({file.string()}, "there is no such file");
}

ModelFormat format_of(const std::filesystem::path& file) {
  if (file.extension() == ".pt2") return ModelFormat::Pt2;
  if (file.extension() == ".csv") return ModelFormat::Table;
  throw ConfigError({file.string()},
                    "the format does not follow from the file's name; say ModelFiles::format");
}

/// What a given plan or schedule says of its request.
void take_given(Request& request) {
  PlanSettings& wishes = request.plan;
  if (wishes.searched()) return;
  Schedule schedule;
  if (wishes.file) {
    Plan plan = read_plan(*wishes.file);
    wishes.order = plan.linear_order;
    if (request.training == StepSettings{}) {
      request.training.precision = plan.training.precision;
      request.training.optimizer = plan.training.optimizer;
      request.training.microbatch_size = plan.training.microbatch_size;
      request.training.mode = plan.training.mode;
      request.training.microbatch_costs = plan.training.microbatch_costs;
    }
    schedule = std::move(plan.schedule);
  } else {
    schedule = read_schedule_file(*wishes.schedule);
  }
  const auto take = [&](const std::string& key, std::size_t given, std::size_t& asked) {
    if (asked != 0 && asked != given)
      throw RefusedWish(key, "\"" + given_file_name(request) + "\" is made for " +
                                 std::to_string(given) + " " + key + "; leave this out");
    asked = given;
  };
  take("devices", schedule.ranks(), request.devices);
  take("microbatches", microbatch_count(schedule) / slice_count(schedule), request.microbatches);
}

/// The request of a model and a cluster at hand, with its sizes said. Errors: RefusedWish.
Request request_of(const Model& model, const Cluster& cluster, const Request& asked) {
  Request request = asked;
  request.model = model.files;
  if (model.layers)
    request.model.format =
        asked.model.format == ModelFormat::Mesh ? ModelFormat::Mesh : ModelFormat::Table;
  request.cluster = cluster.file;
  if (model.layers && request.training.listed_microbatches() == 0)
    request.training.microbatch_costs = model.layers->microbatches;
  if (request.name.empty())
    request.name = model.layers ? model.layers->name : model.files.file.stem().string();
  if (request.mesh)
    throw RefusedWish("parallel",
                      "parallel: a mesh has its own model and hosts; leave the others out");
  if (request.measure)
    throw RefusedWish("engines.measure",
                      "this library runs no plans; save the plan, and run it with pfeife-run");
  check(request);
  take_given(request);
  return with_sizes(std::move(request), cluster.devices());
}

/// Makes the layers of a model as requests want them, each once. May be called from several
/// threads.
class LayersForRequests {
 public:
  LayersForRequests(const Model& model, const Cluster& cluster)
      : model_(model), cluster_(cluster) {}

  std::shared_ptr<const LayersAndWork> of(const Request& request) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, layers] : layers_by_request_)
      if (model_use(known) == model_use(request) && known.calibration == request.calibration)
        return layers;
    const Cluster cluster = calibrated(cluster_, request);
    LayersAndWork layers = model_.layers ? LayersAndWork{.layers = used_layers(request, cluster)}
                                         : read_model(request, cluster);
    layers_by_request_.emplace_back(request,
                                    std::make_shared<const LayersAndWork>(std::move(layers)));
    return layers_by_request_.back().second;
  }
  /// nullptr if the model cannot be as the request wants it.
  const Layers* or_none(const Request& request) {
    if (request.model.format != ModelFormat::Pt2 || request.model.profile) return nullptr;
    try {
      return &of(request)->layers;
    } catch (const ConfigError&) {
      return nullptr;  // exported for one size
    }
  }

 private:
  /// The layers at hand, as the request uses them.
  Layers used_layers(const Request& request, const Cluster& cluster) const {
    const ModelUse use = model_use(request);
    return as_used(cut_as_used(*model_.layers, use), use, cluster);
  }

  const Model& model_;
  const Cluster& cluster_;
  std::mutex mutex_;
  std::deque<std::pair<Request, std::shared_ptr<const LayersAndWork>>> layers_by_request_;
};

/// What plans are made of and with, as long as somebody may show them.
struct MadePlans {
  MadePlans(Model of, Cluster on, const Request& asked)
      : model(std::move(of)), cluster(std::move(on)), request(asked), published(asked) {
    published.calibration.clear();
    used = as_measured(calibrated(cluster, request), request);
    uncalibrated = as_measured(cluster, published);
  }
  Model model;
  Cluster cluster;
  Request request, published;  // the second without calibration
  Cluster used, uncalibrated;  // as the pipeline has them
  LayersForRequests layers{model, cluster};
  EvaluatedCase evaluated;
};

/// Errors: RefusedWish, Stopped.
MeshAnswer choose(const MeshSettings& mesh, const RunOptions& options) try {
  return find_mesh(mesh.question, mesh.network,
                   {.threads = options.threads, .progress = [&](double) {
                      if (options.stop.stop_requested()) throw Stopped();
                    }});
} catch (const ConfigError& error) {
  throw RefusedWish("parallel", std::string("parallel: ") + error.what());
}

Planned planned_of(const EvaluatedCase& evaluated) {
  Planned planned{evaluated.answer()};
  static_cast<RecordedAnswer&>(planned) = recorded_answer(evaluated);
  planned.contestants.push_back(evaluated.planned[evaluated.chosen]);
  for (const Evaluation& baseline : evaluated.baselines) planned.contestants.push_back(baseline);
  if (evaluated.less_memory)
    planned.contestants.push_back(evaluated.planned[*evaluated.less_memory]);
  return planned;
}

/// The same files, those in memory written into the folder.
PlanFiles on_disk(PlanFiles files, const std::filesystem::path& folder) {
  const auto keep = [&](const std::filesystem::path& file, const std::string& name) {
    if (!MemoryFile::is_one(file)) return file;
    write_file(folder / name, read_file(file));
    return std::filesystem::absolute(folder / name);
  };
  const bool archive = files.model.format == ModelFormat::Pt2;
  files.model.file = keep(files.model.file, archive ? "model.pt2" : "model.csv");
  if (files.model.skips) files.model.skips = keep(*files.model.skips, "skips.csv");
  files.cluster = keep(files.cluster, "cluster.yaml").generic_string();
  return files;
}

/// A picture or figure needs what was made.
const EvaluatedCase& searched_case(const Planned& planned) {
  if (!planned.evaluated) throw RuntimeFault("there is nothing to show: no plan was searched");
  return *planned.evaluated;
}

const Evaluation& evaluation_of(const Planned& planned, std::size_t contestant) {
  const EvaluatedCase& evaluated = searched_case(planned);
  if (contestant == 0) return evaluated.planned[evaluated.chosen];
  return contestant <= evaluated.baselines.size() ? evaluated.baselines[contestant - 1]
                                                  : evaluated.planned[*evaluated.less_memory];
}

}  // namespace

Model load_model(const std::filesystem::path& file) {
  must_exist(file);
  return load_model({.file = file, .format = format_of(file)});
}

Model load_model(ModelFiles files) {
  const auto place = [](std::filesystem::path& file) {
    must_exist(file);
    file = std::filesystem::absolute(file);
  };
  place(files.file);
  if (files.skips) place(*files.skips);
  if (files.profile) place(*files.profile);
  return {.files = std::move(files)};
}

Model model_of(Layers layers) {
  return {.files = {}, .layers = std::make_shared<const Layers>(std::move(layers))};
}

Cluster load_cluster(const std::filesystem::path& file) {
  return read_cluster(std::filesystem::absolute(file));
}

std::string changed_cluster(const std::filesystem::path& file,
                            const std::map<std::string, std::string>& values) {
  must_exist(file);
  Replaced replaced;
  for (const auto& [key, text] : values)
    replaced.emplace_back(key, YamlDocument::parse(text, key).root().value());
  std::string text = cluster_text(std::filesystem::absolute(file), replaced);
  parse_cluster(text, file.string());
  return text;
}

Network load_hosts(const std::filesystem::path& file) {
  return read_network(std::filesystem::absolute(file));
}

Architecture load_architecture(const std::filesystem::path& file) {
  return read_architecture(std::filesystem::absolute(file));
}

Planned plan(const Model& model, const Cluster& cluster, const Request& asked,
             const RunOptions& options) {
  const Request request = request_of(model, cluster, asked);
  const auto plans = std::make_shared<MadePlans>(model, cluster, request);
  LayersForRequests& layers = plans->layers;
  CaseInputs inputs{&plans->request, &layers.of(request)->layers, &plans->used};
  if (request.plan_published) {
    inputs.published_layers = &layers.of(plans->published)->layers;
    inputs.published_cluster = &plans->uncalibrated;
  }
  check_case(inputs);
  const auto progress = [&](double share) {
    if (options.stop.stop_requested()) throw Stopped();
    if (options.progress) options.progress(share);
  };
  const LayersOf of_request = [&](const Request& other) { return layers.or_none(other); };
  EvaluatedCase& evaluated = plans->evaluated;
  evaluated =
      plan_case(inputs, of_request, inputs.config->plan.rule().compared, options.threads, progress);
  progress(1);
  simulate_cases({&evaluated, 1}, options.threads);
  const std::shared_ptr<const LayersAndWork> settled = layers.of(*evaluated.settled);
  if (settled->work) evaluated.work = &*settled->work;
  evaluated.published = &plans->cluster;
  Planned planned = planned_of(evaluated);
  planned.layers = {settled, &settled->layers};
  planned.evaluated = {plans, &evaluated};
  if (const Cluster figures = calibrated(cluster, request); !model.layers && !figures.file.empty())
    planned.files = plan_files(request.model, request.replicas, figures.file);
  return planned;
}

Planned plan(const Request& request, const RunOptions& options) {
  if (!request.mesh)
    return plan(load_model(request.model), load_cluster(request.cluster), request, options);
  check(request);
  MeshSettings mesh = *request.mesh;
  mesh.question = mesh_question(request);
  const MeshAnswer answer = choose(mesh, options);
  if (!answer.found()) {
    Planned nothing;
    nothing.contestants.emplace_back().name = kPlanned;
    nothing.contestants.front().reason =
        "no mesh fits into the devices' memory; ask for more devices, a smaller microbatch, or "
        "leave more open";
    return nothing;
  }
  const MeshRun& run = answer.priced.front().run;
  Planned planned =
      plan(model_of(pipeline_layers(pipeline_run(run), mesh.network)),
           pipeline_cluster(run, mesh.network), pipeline_request(request, run), options);
  planned.mesh = run;
  return planned;
}

std::vector<AskedCase> cases_of(const std::string& config, const std::filesystem::path& file,
                                const std::map<std::string, std::string>& file_names) {
  Inputs inputs;
  std::vector<AskedCase> cases;
  Experiment experiment = parse_experiment(config, file, rules_of(inputs));
  for (CaseConfig& asked : experiment.cases) {
    for (const auto& [measured, key] : {std::pair{asked.cluster_measured, "cluster"},
                                        std::pair{asked.profile_measured, "profile"},
                                        std::pair{asked.measure, "engines.measure"}})
      if (measured)
        throw ConfigError(asked.place(key),
                          std::string(key) + ": this library measures nothing; pfeife-exp does");
    for (const auto& [key, name] : file_names) asked.file_names[key] = name;
    cases.push_back(
        {asked, inputs.as_published(asked), resolved_text(asked), inputs.digest(asked)});
  }
  return cases;
}

AskedCase request_of(const std::string& config, const std::filesystem::path& file,
                     const std::map<std::string, std::string>& file_names) {
  std::vector<AskedCase> cases = cases_of(config, file, file_names);
  if (cases.size() != 1)
    throw ConfigError({file.filename().string()}, "has " + std::to_string(cases.size()) +
                                                      " cases, and one is asked for; give each "
                                                      "key one value");
  return std::move(cases.front());
}

std::vector<std::string> request_keys() { return config_keys(); }

Planned load_plan(const std::filesystem::path& named, const RunOptions& options) {
  const std::filesystem::path file = named.extension() == ".yaml" ? named : named / "plan.yaml",
                              folder = file.parent_path();
  must_exist(file);
  const Plan saved = read_plan(file);
  if (!saved.files)
    throw ConfigError({file.string()},
                      "names no files of its model and cluster, from which its costs follow; give "
                      "it to plan() with both: plan: {file: ...}");
  ModelFiles model = saved.files->model;
  model.file = folder / model.file;
  if (model.skips) model.skips = folder / *model.skips;
  if (model.profile) model.profile = folder / *model.profile;
  Request request{.replicas = saved.files->replicas, .plan = {.file = file}, .baselines = {}};
  request.file_names = {{"model", saved.model}, {"cluster", saved.cluster}};
  Planned planned = plan(load_model(std::move(model)), load_cluster(folder / saved.files->cluster),
                         request, options);
  planned.bound = saved.bound;
  return planned;
}

std::optional<CoveringBound> bound_of(const Planned& planned, std::size_t contestant) {
  if (!planned.evaluated) return std::nullopt;
  if (planned.evaluated->answer().bound)
    return covering_bound(*planned.evaluated, evaluation_of(planned, contestant));
  if (!planned.bound || contestant > 0) return std::nullopt;
  return CoveringBound{planned.bound->time, class_name(*planned.bound, false)};  // as its file says
}

std::string covered_text(const Planned& planned, std::size_t contestant) {
  if (!planned.evaluated || !planned.evaluated->answer().bound) return "";
  return covered_text(*planned.evaluated, evaluation_of(planned, contestant));
}

PlannedStages stages_of(const Planned& planned, std::size_t contestant) {
  const EvaluatedCase& evaluated = searched_case(planned);
  const ModelFiles& files = evaluated.config->model;
  const Plan& plan = planned.contestants.at(contestant).priced().plan;
  if (files.format != ModelFormat::Pt2)
    throw ConfigError(
        {files.file.string()},
        "is no .pt2 archive, but layers alone; nothing is known of what executes them");
  PlannedStages stages{.graph = read_pt2(files.file, plan.training.microbatch_size)};
  if (!plan.node_order.empty()) stages.graph = reordered(stages.graph, plan.node_order);
  std::vector<NodeId> cuts;
  for (const std::int32_t node : plan.cut_nodes) cuts.emplace_back(node);
  stages.split = split_graph(stages.graph, table_effects(stages.graph), cuts);
  if (const std::size_t slices = slice_count(plan.schedule); slices > 1)
    stages.slice_ends =
        slice_ends_of(*evaluated.planned.front().inputs.layers, slices, plan.spec.slice_lengths);
  return stages;
}

CaseRecord record_of(const Planned& planned) {
  const EvaluatedCase& evaluated = searched_case(planned);
  return record_of(evaluated, *evaluated.config);
}

std::string table(const Planned& planned, const ScreenOptions& options) {
  return screen_table({record_of(planned)}, options);
}

std::string report(const Planned& planned) {
  const EvaluatedCase& evaluated = searched_case(planned);
  const Request& request = *evaluated.config;
  ReportInput input{.title = request.name, .cases = {record_of(planned)}};
  input.beside_files = false;
  const CaseRecord& record = input.cases.front();
  const bool trains = request.training.mode == Mode::Train;
  for (const auto& [name, value] :
       {std::pair{"Model", record.model}, std::pair{"Cluster", record.cluster},
        std::pair{"Precision", to_string(request.training.precision)},
        std::pair{"Optimizer",
                  trains ? to_string(request.training.optimizer) : "none: forward only"},
        std::pair{"Calibration", record.calibration},
        std::pair{"Program", std::string("pfeife " PFEIFE_VERSION)}})
    if (!value.empty()) input.facts.emplace_back(name, value);
  input.traces = {packed_traces(evaluated)};
  input.clusters = {{record.cluster, *evaluated.planned.front().inputs.cluster}};
  return report_html(input);
}

Pricer::Pricer(const Model& model, const Cluster& cluster, const Request& asked)
    : cluster_(cluster) {
  const Request request = request_of(model, cluster, asked);
  cluster_ = as_measured(calibrated(cluster, request), request);
  const std::shared_ptr<const LayersAndWork> layers_of_request =
      LayersForRequests(model, cluster).of(request);
  layers_ = {layers_of_request, &layers_of_request->layers};
  const CaseInputs inputs{&request, layers_.get(), &cluster_};
  check_case(inputs);
  const Problem problem = settled_problem(inputs, request.plan.recompute);
  schedules_ = problem.schedules;
  device_of_rank_ = problem.device_of_rank;
  memory_limit_ = problem.memory_limit;
  allocator_ = problem.allocator;
  receives_ = problem.receives;
  norm_ = problem.norm;
}

static void check(const Choice& choice, const Layers& layers) {
  if (const auto refused = refusal(choice.spec))
    throw ConfigError({}, to_string(*refused, choice.spec));
  if (choice.partition.stages() != choice.spec.stages())
    throw ConfigError({}, stream_all(name_of(choice), " has ", choice.spec.stages(),
                                     " stages, and the cuts make ", choice.partition.stages()));
  std::string illegal = illegal_because(layers, choice.partition);
  if (illegal.empty())
    illegal = illegal_because(layers, choice.partition, choice.activations.blocks);
  if (!illegal.empty()) throw ConfigError({}, illegal);
}

std::vector<Priced> Pricer::price(std::vector<Choice> choices, std::size_t threads) const {
  for (Choice& choice : choices) {
    check(choice, *layers_);
    if (choice.placement.rank_of_stage.empty())
      choice.placement = placement_for(choice.spec, device_of_rank_);
  }
  Problem problem{*layers_, cluster_, schedules_, device_of_rank_, memory_limit_};
  problem.receives = receives_, problem.norm = norm_, problem.allocator = allocator_;
  std::vector<Priced> priced(choices.size());
  parallel_for(choices.size(), threads,
               [&](std::size_t i) { priced[i] = pfeife::price(problem, std::move(choices[i])); });
  return priced;
}

static Trace simulated(const PricedPlan& priced, const Cluster& cluster,
                       const SimulationSettings& settings) {
  const Plan& plan = priced.plan;
  const DependencyGraph graph =
      dependencies(plan.schedule, stage_graph(priced.costs), plan.placement,
                   {settings.queues, settings.links, false});
  auto result = simulate(graph, priced.costs, plan.placement, cluster,
                         {.launch_overhead = settings.launch_overhead});
  if (std::holds_alternative<Deadlock>(result))
    throw RuntimeFault("the plan's schedule cannot run: it deadlocks");
  Trace trace = std::move(std::get<Trace>(result));
  add_memory(trace, graph, plan.schedule, priced.costs, plan.placement);
  add_link_loads(trace, priced.costs, plan.placement, cluster);
  return trace;
}

Trace simulate(const PricedPlan& priced, const Cluster& cluster) {
  return simulated(priced, cluster, {});
}

Trace simulate(const Planned& planned, std::size_t contestant) {
  const EvaluatedCase& evaluated = searched_case(planned);
  return simulated(planned.contestants.at(contestant).priced(),
                   *evaluated.planned.front().inputs.cluster, evaluated.config->simulation);
}

void write_timeline(const Trace& trace, const std::filesystem::path& file) {
  write_file(file, timeline_svg(trace, {.title = file.stem().string()}));
}

void save(const Planned& planned, const std::filesystem::path& folder, std::size_t contestant) {
  const PricedPlan& priced = planned.contestants.at(contestant).priced();
  Plan plan = priced.plan;
  if (planned.files) plan.files = seen_from(on_disk(*planned.files, folder), folder);
  write_plan_folder(folder, plan, priced.costs, *planned.layers);
  if (planned.certificate && contestant == 0 && planned.best().plan.bound)
    write_file(folder / "certificate.txt", certificate_text(*planned.certificate));
}

/// The mesh file of a plan of an architecture, if it has one.
static std::optional<MeshFile> mesh_file_of(const Planned& planned) {
  if (!planned.files || planned.files->model.format != ModelFormat::Mesh) return std::nullopt;
  return read_mesh_file(planned.files->model.file);
}

Exported export_for(const std::string& framework, const Planned& planned, std::size_t contestant) {
  const Contestant& exported = planned.contestants.at(contestant);
  PricedPlan priced = exported.priced();
  if (!priced.plan.files) priced.plan.files = planned.files;
  const std::optional<MeshFile> file = mesh_file_of(planned);
  const MeshRun run = planned.mesh ? *planned.mesh
                      : file       ? file->run
                                   : run_of_pipeline(priced.plan);
  return export_plan(framework, {.plan = priced.plan,
                                 .layers = *planned.layers,
                                 .costs = priced.costs,
                                 .step = exported.predicted(),
                                 .run = run,
                                 .of_architecture = planned.mesh || file,
                                 .devices_per_host = file ? file->network.devices_per_host : 0});
}

Judgement certify(const std::filesystem::path& folder, std::size_t threads) {
  tool::Judged judged = tool::certify_files(folder, threads, [](const std::string&) {});
  return {std::move(judged.text), judged.proven};
}

}  // namespace pfeife
