#include "experiments/pfeife.h"

#include <deque>
#include <mutex>
#include <utility>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/plan_folder.h"
#include "experiments/plans/reasons.h"
#include "experiments/plans/searched_plans.h"
#include "experiments/plans/simulated_choice.h"
#include "planner/cost/estimate/link_load.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/request/calibrated.h"
#include "planner/ir/request/pipeline.h"
#include "planner/mesh/mesh_search.h"
#include "planner/mesh/replicated_layers.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"
#include "planner/search/price/price.h"
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
  take("microbatches", microbatch_count(schedule), request.microbatches);
}

/// The request of a model and a cluster at hand, with its sizes said. Errors: RefusedWish.
Request request_of(const Model& model, const Cluster& cluster, const Request& asked) {
  Request request = asked;
  request.model = model.files;
  if (model.layers) request.model.format = ModelFormat::Table;
  request.cluster = cluster.file;
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

  std::shared_ptr<const Layers> of(const Request& request) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, layers] : made_)
      if (model_use(known) == model_use(request) && known.calibration == request.calibration)
        return layers;
    const Cluster cluster = calibrated(cluster_, request);
    Layers layers = model_.layers ? replicated(*model_.layers, request.replicas, cluster)
                                  : read_model(request, cluster).layers;
    made_.emplace_back(request, std::make_shared<const Layers>(std::move(layers)));
    return made_.back().second;
  }
  /// nullptr if the model cannot be as the request wants it.
  const Layers* or_none(const Request& request) {
    if (request.model.format != ModelFormat::Pt2 || request.model.profile) return nullptr;
    try {
      return of(request).get();
    } catch (const ConfigError&) {
      return nullptr;  // exported for one size
    }
  }

 private:
  const Model& model_;
  const Cluster& cluster_;
  std::mutex mutex_;
  std::deque<std::pair<Request, std::shared_ptr<const Layers>>> made_;
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

Planned planned_of(EvaluatedCase evaluated) {
  static_cast<RecordedAnswer&>(evaluated.answer) = recorded_answer(evaluated);
  Planned planned{std::move(evaluated.answer)};
  planned.contestants.push_back(std::move(evaluated.planned[evaluated.chosen]));
  for (Evaluation& baseline : evaluated.baselines)
    planned.contestants.push_back(std::move(baseline));
  return planned;
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

Network load_hosts(const std::filesystem::path& file) {
  return read_network(std::filesystem::absolute(file));
}

Architecture load_architecture(const std::filesystem::path& file) {
  return read_architecture(std::filesystem::absolute(file));
}

Planned plan(const Model& model, const Cluster& cluster, const Request& asked,
             const RunOptions& options) {
  const Request request = request_of(model, cluster, asked);
  Request published = request;
  published.calibration.clear();
  LayersForRequests layers(model, cluster);
  const Cluster figures = calibrated(cluster, request);
  const Cluster used = as_measured(figures, request),
                uncalibrated = as_measured(cluster, published);
  const std::shared_ptr<const Layers> of_model = layers.of(request);
  CaseInputs inputs{&request, of_model.get(), &used};
  if (request.plan_published) {
    inputs.published_layers = layers.of(published).get();
    inputs.published_cluster = &uncalibrated;
  }
  check_case(inputs);
  const auto progress = [&](double share) {
    if (options.stop.stop_requested()) throw Stopped();
    if (options.progress) options.progress(share);
  };
  const LayersOf of_request = [&](const Request& other) { return layers.or_none(other); };
  EvaluatedCase evaluated = plan_case(inputs, of_request, kKeptPlans, options.threads, progress);
  progress(1);
  simulate_cases({&evaluated, 1}, options.threads);
  const std::shared_ptr<const Request> settled = evaluated.settled;
  Planned planned = planned_of(std::move(evaluated));
  planned.layers = layers.of(*settled);
  if (!model.layers && !figures.file.empty())
    planned.files = plan_files(request.model, request.replicas, figures.file);
  return planned;
}

Planned plan(const Request& request, const RunOptions& options) {
  if (!request.mesh)
    return plan(load_model(request.model), load_cluster(request.cluster), request, options);
  check(request);
  const MeshSettings& mesh = *request.mesh;
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

Pricer::Pricer(const Model& model, const Cluster& cluster, const Request& asked)
    : cluster_(cluster) {
  const Request request = request_of(model, cluster, asked);
  cluster_ = as_measured(calibrated(cluster, request), request);
  layers_ = LayersForRequests(model, cluster).of(request);
  const CaseInputs inputs{&request, layers_.get(), &cluster_};
  check_case(inputs);
  const Problem problem = settled_problem(inputs, request.plan.recompute);
  schedules_ = problem.schedules;
  device_of_rank_ = problem.device_of_rank;
  memory_limit_ = problem.memory_limit;
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
    illegal = illegal_because(layers, choice.partition, choice.recomputed.blocks);
  if (!illegal.empty()) throw ConfigError({}, illegal);
}

std::vector<Priced> Pricer::price(std::vector<Choice> choices, std::size_t threads) const {
  for (Choice& choice : choices) {
    check(choice, *layers_);
    if (choice.placement.rank_of_stage.empty())
      choice.placement = placement_for(choice.spec, device_of_rank_);
  }
  Problem problem{*layers_, cluster_, schedules_, device_of_rank_, memory_limit_};
  problem.receives = receives_, problem.norm = norm_;
  std::vector<Priced> priced(choices.size());
  parallel_for(choices.size(), threads,
               [&](std::size_t i) { priced[i] = pfeife::price(problem, std::move(choices[i])); });
  return priced;
}

Trace simulate(const PricedPlan& priced, const Cluster& cluster) {
  const SimulationSettings settings;
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

void write_timeline(const Trace& trace, const std::filesystem::path& file) {
  write_file(file, timeline_svg(trace, {.title = file.stem().string()}));
}

void save(const Planned& planned, const std::filesystem::path& folder, std::size_t contestant) {
  const PricedPlan& priced = planned.contestants.at(contestant).priced();
  Plan plan = priced.plan;
  if (planned.files) plan.files = seen_from(*planned.files, folder);
  write_plan_folder(folder, plan, priced.costs, *planned.layers);
  if (planned.certificate && contestant == 0)
    write_file(folder / "certificate.txt", certificate_text(*planned.certificate));
}

Judgement certify(const std::filesystem::path& folder, std::size_t threads) {
  tool::Judged judged = tool::certify_files(folder, threads, [](const std::string&) {});
  return {std::move(judged.text), judged.proven};
}

}  // namespace pfeife
