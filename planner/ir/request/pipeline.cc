#include "planner/ir/request/pipeline.h"

#include <algorithm>

#include "planner/ir/request/framework.h"

namespace pfeife {
namespace {

constexpr const char* kInterleaved = "interleaved_1f1b";
constexpr const char* kSharedHead[] = {"vocab_1", "vocab_2", "interlaced"};

/// Leaves of what is open the meshes whose ranks can share the output layer.
void take_dividing(MeshQuestion& question) {
  const MeshQuestion open = usual_mesh();
  for (auto* sizes : {&question.tp, &question.cp, &question.ep})
    if (sizes->empty()) *sizes = {1};
  if (question.zero == open.zero) question.zero = {0};
  if (question.stages_per_rank == open.stages_per_rank) question.stages_per_rank = {1};
}

}  // namespace

MeshQuestion mesh_question(const Request& request) {
  MeshQuestion question = request.mesh->question;
  question.allocator = request.plan.allocator;
  question.memory_margin = request.plan.memory_margin;
  question.reserve = request.plan.reserve;
  if (request.plan.head == PlanSettings::Head::Shared) take_dividing(question);
  const Framework* const made_for = framework(request.plan.framework);
  if (made_for == nullptr) return question;
  const MeshQuestion open = usual_mesh();
  if (question.zero == open.zero) question.zero = made_for->zero;
  if (!made_for->divides_contexts_and_experts)
    for (auto* sizes : {&question.cp, &question.ep})
      if (sizes->empty()) *sizes = {1};
  if (!made_for->divides_tensors && question.tp.empty()) question.tp = {1};
  const bool interleaves =
      made_for->families.empty() ||
      std::ranges::find(made_for->families, kInterleaved) != made_for->families.end();
  if (question.stages_per_rank == open.stages_per_rank && !interleaves)
    question.stages_per_rank = {1};
  return question;
}

Request pipeline_request(const Request& mesh_request, const MeshRun& run) {
  Request request = mesh_request;
  request.mesh.reset();
  request.model = {.format = ModelFormat::Mesh};
  request.devices = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline));
  request.microbatches = static_cast<std::size_t>(run.microbatches());
  request.training.precision =
      run.type == DType::BFloat16 ? Precision::Bf16Amp : Precision::Fp16Amp;
  request.training.optimizer = run.optimizer;
  request.training.microbatch_size = run.microbatch_size * run.mesh.size(Axis::Data);
  const Request usual;
  const auto open = [&](const char* key, const auto& wish, const auto& otherwise) {
    return wish == otherwise && !mesh_request.mesh->given.contains(key);
  };
  PlanSettings& plan = request.plan;
  const bool interleaved = run.stages_per_rank > 1;
  if (open("plan.families", plan.families, usual.plan.families)) {
    using Head = PlanSettings::Head;
    plan.families.clear();
    if (plan.head != Head::Shared) plan.families = {"1f1b", "zb_greedy"};
    if (plan.head != Head::Shared && interleaved) plan.families.emplace_back(kInterleaved);
    if (plan.head != Head::Last)
      for (const char* name : kSharedHead) plan.families.emplace_back(name);
  }
  if (open("plan.stages_per_rank", plan.stages_per_rank, usual.plan.stages_per_rank)) {
    plan.stages_per_rank = {1};
    if (interleaved) plan.stages_per_rank.push_back(static_cast<std::size_t>(run.stages_per_rank));
  }
  const Framework* const made_for = framework(plan.framework);
  const bool recompute_open = made_for != nullptr
                                  ? !mesh_request.mesh->given.contains("plan.recompute")
                                  : open("plan.recompute", plan.recompute, usual.plan.recompute);
  if (recompute_open)
    plan.recompute = run.recomputation == Recompute::Full ? Recompute::Blocks : run.recomputation;
  if (recompute_open && made_for != nullptr &&
      std::ranges::find(made_for->recompute, plan.recompute) == made_for->recompute.end())
    plan.recompute = Recompute::Full;
  if (open("baselines", request.baselines, usual.baselines)) {
    const Recompute again =
        plan.recompute == Recompute::IfNeeded ? Recompute::None : plan.recompute;
    request.baselines = {{.family = "1f1b", .recompute = again, .called = "1f1b"}};
  }
  return request;
}

MeshRun pipeline_run(MeshRun run) {
  const MeshRun usual;
  run.balanced = true;
  run.schedule = usual.schedule;
  run.stages_per_rank = usual.stages_per_rank;
  run.recomputation = usual.recomputation;
  run.scatter_gather = usual.scatter_gather;
  run.overlap_input_gradients = usual.overlap_input_gradients;
  return run;
}

}  // namespace pfeife
