#include "experiments/studies/published_runs/against_planner.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"
#include "sim/simulator.h"

namespace pfeife::published {
namespace {

MeshOfRun mesh_of(const MeshRun& run, const Network& network) {
  const MeshPrice price = price_mesh(run, network);
  MeshOfRun of{run, price.plan.estimate, std::nullopt, Bytes{0}};
  for (const Bytes bytes : price.plan.peak_memory) of.peak = std::max(of.peak, bytes);
  if (!simulator_available()) return of;
  const DependencyGraph graph =
      dependencies(price.plan.lowered, stage_graph(price.plan.costs), price.placement,
                   {.queues = Queues::Pair, .links = Links::Shared});
  const auto ran =
      simulate(graph, price.plan.costs, price.placement, pipeline_cluster(run, network));
  if (const auto* trace = std::get_if<Trace>(&ran)) of.simulated = step_time(*trace);
  return of;
}

}  // namespace

MeshQuestion question_of(const MeshRun& published) {
  MeshQuestion question;
  question.run = published;
  question.run.sequence_parallel = true;
  question.devices = published.mesh.devices();
  if (published.mesh.size(Axis::Context) == 1) question.cp = {1};
  question.ep = {1};
  if (published.zero > 0)
    question.zero = {published.zero};
  else
    question.zero = {0, 1};
  if (std::ranges::find(question.stages_per_rank, published.stages_per_rank) ==
      question.stages_per_rank.end())
    question.stages_per_rank.push_back(published.stages_per_rank);
  return question;
}

Match match(const MeshRun& published, const Network& network, std::size_t threads) {
  const MeshAnswer answer = find_mesh(question_of(published), network, {.threads = threads});
  if (!answer.found()) throw ConfigError({}, "no mesh fits");
  Match match{mesh_of(published, network), mesh_of(answer.priced.front().run, network)};
  match.fits = match.published.peak <= memory_limit(network);
  match.slower = match.planned.step() > match.published.step();
  return match;
}

}  // namespace pfeife::published
