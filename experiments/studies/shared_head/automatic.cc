#include "experiments/studies/shared_head/automatic.h"

#include "planner/inputs/read_layers.h"

namespace pfeife::shared_head {

Planned planned_automatically(const PublishedStages& run, const Network& network) {
  const MeshRun shapes = mesh_run(run);
  Request request{.devices = run.ranks(), .microbatches = run.microbatches};
  request.training.precision = Precision::Fp16Amp;
  request.plan.families = {"1f1b", "vocab_1", "vocab_2", "interlaced"};
  request.plan.stages_per_rank = {1};
  request.plan.head = PlanSettings::Head::Auto;
  request.plan.recompute = Recompute::None;
  request.plan.iterations = 20;
  request.baselines.clear();
  request.simulate = false;
  return plan(model_of(pipeline_layers(shapes, network)), pipeline_cluster(shapes, network),
              request);
}

}  // namespace pfeife::shared_head
