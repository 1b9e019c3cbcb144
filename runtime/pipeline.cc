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
constexpr std::uint32_t kResultTask = kNormTask - 2;

double squared_norm(const at::Tensor& gradient) {
  return at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble)
      .square()
      .item<double>();
}

void require_fit(const Graph& graph, const std::map<ValueId, at::Tensor>& inputs,
                 const Placing& placing) {
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    const auto found = inputs.find(id);
    if (found == inputs.end())
      throw ConfigError({graph.name}, "the input '" + value.name + "' is missing");
    const at::Tensor& tensor = found->second;
    if (tensor.sizes() == at::IntArrayRef(value.type.sizes) &&
        tensor.scalar_type() == placed_type(value.type.dtype, placing))
      continue;
    throw ConfigError(
        {graph.name},
        stream_all("the input '", value.name, "' is ", tensor.scalar_type(), tensor.sizes(),
                   ", the model takes ", placed_type(value.type.dtype, placing),
                   at::IntArrayRef(value.type.sizes), " for ", graph.microbatch_size,
                   " samples: only the number of samples may differ from the export"));
  }
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
    : pipeline_(pipeline),
      rank_(rank),
      options_(options),
      source_(source),
      transport_(transport),
      turns_(turns) {
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
  if (inputs.microbatches.size() != pipeline_.microbatches)
    throw ConfigError({"step"}, stream_all("has ", inputs.microbatches.size(),
                                           " microbatches, the schedule ", pipeline_.microbatches));
  prepare(inputs, stages_);
  set_aside_shared();
  updated_.clear();
  loss_scale_ = inputs.loss_scale;
  if (options_.update) ++updates_;
  std::vector<TaskRecord> records = executor_->run(++calls_);
  if (options_.update) clip_gradients();
  for (const StageId s : own_) update_stage(s);  // what the schedule did not update itself
  return records;
}

const Graph& RankPipeline::resized(std::int64_t samples) {
  if (samples == pipeline_.graph.microbatch_size) return pipeline_.graph;
  if (const auto known = resized_.find(samples); known != resized_.end()) return known->second;
  if (!pipeline_.graph.symbolic_batch)
    throw ConfigError({pipeline_.graph.name},
                      stream_all("was exported for microbatches of ",
                                 pipeline_.graph.microbatch_size, " samples; one of ", samples,
                                 " needs an export whose batch size is open"));
  Graph graph = source_.graph(samples);
  if (graph.digest != pipeline_.graph.digest)
    throw ConfigError({pipeline_.graph.name}, "the archive has changed since it was read");
  return resized_[samples] = std::move(graph);
}

/// Makes the stages ready for the sizes that occur, and refuses inputs that do not fit.
void RankPipeline::prepare(const StepInputs& inputs,
                           std::map<StageId, std::unique_ptr<GraphStage>>& stages) {
  for (std::size_t i = 0; i < inputs.microbatches.size(); ++i) {
    const std::int64_t samples =
        inputs.samples_of(MicrobatchId{static_cast<std::int64_t>(i)}, pipeline_.graph);
    if (samples == 0) continue;
    const Graph& graph = resized(samples);
    require_fit(graph, inputs.microbatches[i], options_.placing);
    for (auto& [s, stage] : stages) stage->add_size(graph, pipeline_.effects);
  }
  for (auto& [s, stage] : stages) stage->begin(inputs);
}

std::optional<double> RankPipeline::mean_loss() const {
  const std::vector<double> made = losses();
  if (made.empty()) return {};
  double mean = 0;
  for (std::size_t m = 0; m < made.size(); ++m) mean += made[m] * loss_scale_.at(m);
  return mean;
}

double RankPipeline::mean_loss_everywhere() {
  const RankId maker = pipeline_.placement.rank(maker_of(loss_of(pipeline_.graph)));
  const Tag tag{++calls_, kResultTask, 0};
  if (rank_ != maker) return transport_.receive(maker, tag).tensors.at(0).item<double>();
  const double mean = mean_loss().value();
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    if (r != rank_.index())
      transport_.send(RankId{static_cast<std::int64_t>(r)}, tag,
                      {at::scalar_tensor(mean, at::kDouble)});
  return mean;
}

ValueId RankPipeline::value_named(const std::string& name) const {
  std::vector<std::string> known;
  for (std::size_t v = 0; v < pipeline_.graph.values.size(); ++v) {
    if (!pipeline_.graph.values[v].producer) continue;
    if (pipeline_.graph.values[v].name == name) return ValueId{static_cast<std::int64_t>(v)};
    known.push_back(pipeline_.graph.values[v].name);
  }
  throw ConfigError({pipeline_.graph.name}, "computes no value '" + name +
                                                "'; near is '" + nearest_spelling(name, known) +
                                                "'");
}

/// Where the value is made; the last stage if several make it.
StageId RankPipeline::maker_of(ValueId value) const {
  const NodeId node = *pipeline_.graph.value(value).producer;
  for (std::size_t s = pipeline_.split.stages.size(); s-- > 0;)
    if (std::ranges::binary_search(pipeline_.split.stages[s].nodes, node))
      return StageId{static_cast<std::int64_t>(s)};
  throw ConfigError({pipeline_.graph.name}, "'" + pipeline_.graph.value(value).name +
                                                "' is computed nowhere: nothing reads it");
}

void RankPipeline::keep(const std::string& value) {
  const ValueId id = value_named(value);
  const StageId maker = maker_of(id);
  if (pipeline_.placement.rank(maker) != rank_) return;
  kept_[maker].push_back(id);
  stages_.at(maker)->keep(kept_[maker]);
}

Tensors RankPipeline::kept(const std::string& value, RankId at) {
  const ValueId id = value_named(value);
  const StageId maker = maker_of(id);
  const RankId from = pipeline_.placement.rank(maker);
  const Tag tag{++calls_, kResultTask, 0};
  if (rank_ != from) return rank_ == at ? transport_.receive(from, tag).tensors : Tensors{};
  Tensors made;
  for (std::size_t m = 0; m < pipeline_.microbatches; ++m)
    made.push_back(stages_.at(maker)->output(MicrobatchId{static_cast<std::int64_t>(m)}, id));
  if (rank_ == at) return made;
  transport_.send(at, tag, made);
  return {};
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
      if (gradient.defined()) sum = sum.defined() ? sum + gradient : gradient.clone();
    if (const auto before = earlier_.extract(p))
      sum = sum.defined() ? before.mapped() + sum : before.mapped();
    own.mutable_grad() = sum;
  }
}

/// What earlier steps left in the gradients of shared parameters is in every rank's copy: only the
/// gradients of this step are to be reduced.
void RankPipeline::set_aside_shared() {
  for (const auto& group : pipeline_.stages.tied)
    for (auto& [p, tensor] : tensors_.parameters) {
      if (!tensor.grad().defined()) continue;
      const bool shared = std::ranges::any_of(group, [&](StageId s) {
        return pipeline_.placement.rank(s) != rank_ &&
               std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, p);
      });
      if (!shared) continue;
      earlier_[p] = tensor.grad();
      tensor.mutable_grad().reset();
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
  const Tag tag{calls_, kNormTask, 0};
  const at::Tensor own = at::scalar_tensor(sum, at::kDouble);
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    if (r != rank_.index()) transport_.send(RankId{static_cast<std::int64_t>(r)}, tag, {own});
  double total = 0;
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    total += r == rank_.index() ? sum
                                : transport_.receive(RankId{static_cast<std::int64_t>(r)}, tag)
                                      .tensors.at(0)
                                      .item<double>();
  const double factor = options_.optimizer.clip_norm / (std::sqrt(total) + 1e-6);
  if (factor >= 1) return;
  const at::NoGradGuard no_gradients;
  for (auto& [p, tensor] : tensors_.parameters)  // not in place: a sent gradient may still be read
    if (tensor.grad().defined())
      tensor.mutable_grad() = tensor.grad() * factor;
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
                       .training = false,
                       .seed = options_.seed});
  ++calls_;
  const auto stages = static_cast<std::uint32_t>(pipeline_.stages.stages);
  const auto tag = [&](MicrobatchId m, StageId from, StageId to) {
    return Tag{
        calls_, kEvaluationTask,
        (static_cast<std::uint32_t>(m.value) * stages + static_cast<std::uint32_t>(from.value)) *
                stages +
            static_cast<std::uint32_t>(to.value)};
  };
  prepare(inputs, evaluation_stages_);
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
