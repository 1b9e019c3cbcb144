#include "runtime/pipeline.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "planner/ir/error.h"
#include "planner/ir/lower.h"
#include "planner/ir/validate.h"
#include "runtime/in_process_transport.h"

namespace pfeife {
namespace {

bool has_transfers_or_steps(const Schedule& schedule) {
  bool lowered = false;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) { lowered = lowered || !is_compute(a.op); });
  return lowered;
}

void require_right(const Pipeline& pipeline) {
  if (pipeline.stages.stages != stage_count(pipeline.schedule))
    throw ConfigError({"schedule"}, stream_all("has ", stage_count(pipeline.schedule),
                                               " stages, the cuts make ", pipeline.stages.stages));
  const auto violations =
      validate(pipeline.schedule, {pipeline.stages, pipeline.microbatches, /*lowered=*/true},
               {.queues = Queues::None, .links = Links::Delay, .blocking = false});
  if (violations.empty()) return;
  const Violation& first = violations.front();
  throw ConfigError(
      {"schedule"},
      stream_all("rank ", first.rank.value, ", cell ", first.position, ": ", first.message,
                 violations.size() > 1 ? stream_all(" (and ", violations.size() - 1, " more)") : "",
                 "; lower the compute-only schedule for this partition"));
}

constexpr std::uint32_t kNormTask = ~std::uint32_t{0};
constexpr std::uint32_t kEvaluationTask = kNormTask - 1;

double squared_norm(const at::Tensor& gradient) {
  return at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble)
      .square()
      .item<double>();
}

std::vector<double> losses_in(const std::map<StageId, std::unique_ptr<GraphStage>>& stages) {
  std::vector<double> losses;
  for (const auto& [s, stage] : stages)
    for (std::int64_t m = 0; const auto loss = stage->loss(MicrobatchId{m}); ++m)
      losses.push_back(loss->item<double>());
  return losses;
}

}  // namespace

Pipeline make_pipeline(Graph graph, std::span<const NodeId> cuts, const Schedule& schedule,
                       const Placement& placement) {
  Pipeline pipeline;
  pipeline.graph = std::move(graph);
  pipeline.effects = effects_of(pipeline.graph);
  pipeline.split = split_graph(pipeline.graph, pipeline.effects, cuts);
  if (placement.stages() != pipeline.split.stages.size())
    throw ConfigError({"schedule"},
                      stream_all("places ", placement.stages(), " stages, the cuts make ",
                                 pipeline.split.stages.size()));
  pipeline.stages = stage_graph(pipeline.graph, pipeline.split, placement);
  pipeline.placement = placement;
  pipeline.microbatches = microbatch_count(schedule);
  pipeline.schedule =
      has_transfers_or_steps(schedule)
          ? schedule
          : lower(schedule, unit_costs(pipeline.graph, pipeline.split, placement), placement);
  require_right(pipeline);
  pipeline.tasks = dependencies(pipeline.schedule, pipeline.stages, placement, Semantics{});
  return pipeline;
}

Pipeline unsplit_pipeline(Graph graph, std::size_t microbatches) {
  Schedule schedule{{{}}};
  for (std::size_t m = 0; m < microbatches; ++m) {
    const MicrobatchId id{static_cast<std::int64_t>(m)};
    schedule.rows[0].push_back(forward(StageId{0}, id));
    schedule.rows[0].push_back(backward(StageId{0}, id));
  }
  return make_pipeline(std::move(graph), {}, schedule, round_robin(1, 1));
}

RankPipeline::RankPipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                           const RankOptions& options, RandomTurns& turns, Transport& transport)
    : pipeline_(pipeline), rank_(rank), options_(options), transport_(transport), turns_(turns) {
  std::vector<bool> splits(pipeline.stages.stages);
  for (const auto& row : pipeline.schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) {
        if (a.op == Op::BackwardInput) splits[a.stage.index()] = true;
      });
  for (std::size_t s = 0; s < pipeline.stages.stages; ++s)
    if (pipeline.placement.rank_of_stage[s] == rank)
      own_.emplace_back(static_cast<std::int64_t>(s));
  tensors_ = load_tensors(pipeline.graph, pipeline.split, own_, source, options.placing);
  RankWork work;
  for (const StageId s : own_) {
    const StageOptions stage_options{
        .placing = options.placing,
        .split_backward = splits[s.index()],
        .recompute = !options.recompute.empty() && options.recompute.at(s.index()),
        .autocast_bf16 = options.autocast_bf16,
        .training = true,
        .seed = options.seed};
    stages_[s] = std::make_unique<GraphStage>(pipeline.graph, pipeline.effects, pipeline.split, s,
                                              tensors_, turns, stage_options);
    work.stages[s] = stages_[s].get();
  }
  work.contribution = [this](const Task& t, RankId other) { return contribution(t, other); };
  work.reduce = [this](const Task& t, const auto& parts) { reduce(t, parts); };
  work.optimizer_step = [this](StageId s) {
    if (options_.optimizer.clip_norm <= 0) update_stage(s);  // clipping needs all gradients
  };
  work.entering = [this](const Cell& cell) {
    if (entering_) entering_(cell);
  };
  executor_ = std::make_unique<RankExecutor>(pipeline.tasks, pipeline.placement, rank,
                                             std::move(work), transport);
}

std::vector<TaskRecord> RankPipeline::step(const StepInputs& inputs) {
  for (auto& [s, stage] : stages_) stage->begin(inputs);
  updated_.clear();
  step_ = inputs.step;
  if (options_.update) ++updates_;
  std::vector<TaskRecord> records = executor_->run(inputs.step);
  if (options_.update) clip_gradients();
  for (const StageId s : own_) update_stage(s);  // what the schedule did not update itself
  return records;
}

bool RankPipeline::uses(RankId rank, ParameterId parameter) const {
  for (std::size_t s = 0; s < pipeline_.stages.stages; ++s)
    if (pipeline_.placement.rank_of_stage[s] == rank &&
        std::ranges::binary_search(pipeline_.split.stages[s].parameters, parameter))
      return true;
  return false;
}

/// Trainable parameters of the reduction's stages that both ranks hold, by number.
std::vector<ParameterId> RankPipeline::shared_in(const Task& reduction, RankId other) const {
  const auto& stages = pipeline_.tasks.slots[reduction.slot].stages;
  std::vector<ParameterId> shared;
  for (std::size_t p = 0; p < pipeline_.graph.parameters.size(); ++p) {
    const ParameterId id{static_cast<std::int64_t>(p)};
    const bool here = std::ranges::any_of(stages, [&](StageId s) {
      return std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, id);
    });
    if (here && pipeline_.graph.parameters[p].trainable && uses(rank_, id) && uses(other, id))
      shared.push_back(id);
  }
  return shared;
}

Tensors RankPipeline::contribution(const Task& reduction, RankId other) {
  Tensors gradients;
  for (const ParameterId p : shared_in(reduction, other))
    gradients.push_back(tensors_.parameters.at(p).grad());
  return gradients;
}

void RankPipeline::reduce(const Task& reduction, const std::map<RankId, Tensors>& parts) {
  std::map<ParameterId, std::map<RankId, at::Tensor>> by_parameter;
  for (const auto& [other, tensors] : parts) {
    const auto shared = shared_in(reduction, other);
    PFEIFE_CHECK(shared.size() == tensors.size(), "parts of a reduction differ");
    for (std::size_t i = 0; i < shared.size(); ++i) by_parameter[shared[i]][other] = tensors[i];
  }
  for (auto& [p, of_rank] : by_parameter) {
    at::Tensor& own = tensors_.parameters.at(p);
    of_rank[rank_] = own.grad();
    at::Tensor sum;  // in order of ranks: the same bits everywhere, replicas stay equal
    for (const auto& [rank, gradient] : of_rank)
      if (gradient.defined()) sum = sum.defined() ? sum + gradient : gradient;
    own.mutable_grad() = sum;
  }
}

/// Scales all gradients so that their norm over the whole model is at most the limit. Every rank
/// must call it at the same step; a parameter that several ranks hold counts once.
void RankPipeline::clip_gradients() {
  if (options_.optimizer.clip_norm <= 0) return;
  double sum = 0;
  for (const auto& [p, tensor] : tensors_.parameters) {
    bool counted = false;
    for (std::size_t r = 0; r < rank_.index(); ++r)
      counted = counted || uses(RankId{static_cast<std::int64_t>(r)}, p);
    if (!counted && tensor.grad().defined()) sum += squared_norm(tensor.grad());
  }
  const Tag tag{step_, kNormTask, 0};
  const at::Tensor own = at::scalar_tensor(sum, at::kDouble);
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    if (r != rank_.index()) transport_.send(RankId{static_cast<std::int64_t>(r)}, tag, {own});
  double total = 0;
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    total += r == rank_.index() ? sum
                                : transport_.receive(RankId{static_cast<std::int64_t>(r)}, tag)
                                      .tensors.at(0)
                                      .item<double>();
  const double norm = std::sqrt(total);
  if (norm <= options_.optimizer.clip_norm) return;
  const at::NoGradGuard no_gradients;
  for (auto& [p, tensor] : tensors_.parameters)  // not in place: a sent gradient may still be read
    if (tensor.grad().defined())
      tensor.mutable_grad() = tensor.grad() * (options_.optimizer.clip_norm / (norm + 1e-6));
}

void RankPipeline::update_stage(StageId stage) {
  if (!options_.update || updated_[stage]) return;
  updated_[stage] = true;
  // A parameter of several stages of the rank is updated with the last of them: once a step.
  const auto is_open = [&](ParameterId p) {
    return std::ranges::any_of(own_, [&](StageId s) {
      return !updated_[s] &&
             std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, p);
    });
  };
  std::vector<ParameterId> complete = pipeline_.split.stages[stage.index()].parameters;
  std::erase_if(complete, is_open);
  update(tensors_, complete, optimizer_state_, options_.optimizer, updates_);
}

void RankPipeline::evaluate(const StepInputs& inputs) {
  if (evaluation_stages_.empty())
    for (const StageId s : own_)
      evaluation_stages_[s] = std::make_unique<GraphStage>(
          pipeline_.graph, pipeline_.effects, pipeline_.split, s, tensors_, turns_,
          StageOptions{.placing = options_.placing,
                       .autocast_bf16 = options_.autocast_bf16,
                       .training = false});
  const auto stages = static_cast<std::uint32_t>(pipeline_.stages.stages);
  const auto tag = [&](MicrobatchId m, StageId from, StageId to) {
    return Tag{
        inputs.step, kEvaluationTask,
        (static_cast<std::uint32_t>(m.value) * stages + static_cast<std::uint32_t>(from.value)) *
                stages +
            static_cast<std::uint32_t>(to.value)};
  };
  for (auto& [s, stage] : evaluation_stages_) stage->begin(inputs);
  for (std::size_t i = 0; i < inputs.microbatches.size(); ++i) {
    const MicrobatchId m{static_cast<std::int64_t>(i)};
    for (const StageId s : own_) {
      GraphStage& stage = *evaluation_stages_.at(s);
      PerStage in;
      for (const StageId from : stage.sources())
        in.push_back(transport_.receive(pipeline_.placement.rank(from), tag(m, from, s)).tensors);
      const PerStage out = stage.forward(m, in);
      for (std::size_t d = 0; d < out.size(); ++d)
        transport_.send(pipeline_.placement.rank(stage.destinations()[d]),
                        tag(m, s, stage.destinations()[d]), out[d]);
    }
  }
}

std::vector<double> RankPipeline::losses() const { return losses_in(stages_); }
std::vector<double> RankPipeline::evaluation_losses() const {
  return losses_in(evaluation_stages_);
}

void run_ranks(std::size_t ranks, const std::function<void(RankId, Transport&)>& body) {
  InProcessHub hub(ranks);
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const RankId rank{static_cast<std::int64_t>(r)};
      const auto transport = hub.transport(rank);
      try {
        body(rank, *transport);
      } catch (const std::exception& error) {
        failures[r] = error.what();
        transport->stop("rank " + to_string(rank) + " failed: " + error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures)
    if (!failure.empty()) throw RuntimeFault(failure);
}

}  // namespace pfeife
