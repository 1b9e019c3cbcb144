#include "runtime/execute/rank_pipeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/ir/basics/error.h"
#include "runtime/device/device.h"

namespace pfeife {
namespace {

// replica_gradients.cc has those below.
constexpr std::uint32_t kNormTask = ~std::uint32_t{0};
constexpr std::uint32_t kEvaluationTask = kNormTask - 1;

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

std::optional<double> mean_of(const std::vector<double>& losses,
                              const std::vector<double>& shares) {
  if (losses.empty()) return {};
  double mean = 0;
  for (std::size_t m = 0; m < losses.size(); ++m) mean += losses[m] * shares.at(m);
  return mean;
}

std::vector<StageId> stages_of(const Pipeline& pipeline, RankId rank) {
  std::vector<StageId> own;
  for (std::size_t s = 0; s < pipeline.stages.stages; ++s)
    if (pipeline.placement.rank_of_stage[s] == rank) own.emplace_back(static_cast<std::int64_t>(s));
  return own;
}

/// [stage] its backward is in two parts.
std::vector<bool> split_stages(const Pipeline& pipeline) {
  std::vector<bool> splits(pipeline.stages.stages);
  for (const auto& row : pipeline.schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) {
        if (a.op == Op::BackwardInput) splits[a.stage.index()] = true;
      });
  return splits;
}

/// [stage]
std::vector<std::set<MicrobatchId>> offloaded_microbatches(const Pipeline& pipeline) {
  std::vector<std::set<MicrobatchId>> offloaded(pipeline.stages.stages);
  for (const Task& task : pipeline.tasks.tasks)
    if (task.kind == TaskKind::Copy) {
      const Action& copy = std::get<Action>(task.cell);
      offloaded[copy.stage.index()].insert(*copy.microbatch);
    }
  return offloaded;
}

/// In numbers among all ranks.
Exchanges exchanges_of(const Pipeline& pipeline) {
  Exchanges exchanges;
  for (std::size_t d = 0; d < pipeline.replicas.count; ++d)
    for (const Task& task : pipeline.tasks.tasks) {
      if (task.kind == TaskKind::Transfer)
        exchanges.messages.insert({pipeline.number(d, task.rank), pipeline.number(d, task.peer)});
      if (task.kind != TaskKind::Reduction) continue;
      std::vector<RankId> parties;
      for (const RankId party : task.parties) parties.push_back(pipeline.number(d, party));
      exchanges.sums.insert(std::move(parties));
    }
  for (std::size_t r = 0; pipeline.replicas.count > 1 && r < pipeline.ranks(); ++r)
    exchanges.sums.insert(pipeline.copies_of(RankId{r}));
  exchanges.name = [&pipeline](std::uint32_t task) {
    return task < pipeline.tasks.size() ? to_string(pipeline.tasks.tasks[task].cell) : "";
  };
  return exchanges;
}

std::unique_ptr<GroupTransport> group_of(const Pipeline& pipeline, RankId number,
                                         Transport& transport) {
  if (pipeline.replicas.count == 1) return nullptr;
  return std::make_unique<GroupTransport>(transport,
                                          pipeline.replica_ranks(pipeline.replica_of(number)));
}

}  // namespace

RankPipeline::RankPipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                           const RankOptions& options, RandomTurns& turns, Transport& transport)
    : pipeline_(pipeline),
      number_(rank),
      rank_(pipeline.pipeline_rank_of(rank)),
      options_(options),
      update_(options.optimizer),
      source_(source),
      group_(group_of(pipeline, rank, transport)),
      transport_(group_ ? *group_ : transport),
      turns_(turns),
      own_(stages_of(pipeline, rank_)),
      tensors_(load_tensors(pipeline.graph, pipeline.split, own_, source, options.placing)),
      replicas_(pipeline, rank, tensors_, options.update, transport),
      shared_(pipeline, rank_, tensors_),
      stages_(make_stages(/*training=*/true)),
      host_engines_(options.placing.device),
      executor_(std::make_unique<RankExecutor>(pipeline.tasks, pipeline.placement, rank_, work(),
                                               transport_)) {
  if (options_.loss_scale && options_.update) factor_.emplace(*options_.loss_scale);
  if (pipeline.graph.loss_weight &&
      pipeline.placement.rank(maker_of(loss_of(pipeline.graph))) == rank_)
    weights_.emplace(pipeline.graph, pipeline.effects, source, options.placing, turns);
  if (!transport.keeps_rows()) return;
  Exchanges exchanges = exchanges_of(pipeline);
  const bool norm_in_rows = std::ranges::any_of(pipeline.tasks.tasks, is_norm);
  if ((norm_in_rows || settles()) && pipeline.ranks() > 1)
    for (std::size_t d = 0; d < pipeline.replicas.count; ++d) {
      std::vector<RankId> all = pipeline.replica_ranks(d);
      std::ranges::sort(all);
      exchanges.sums.insert(std::move(all));
    }
  transport.prepare(exchanges);
}

RankPipeline::Stages RankPipeline::make_stages(bool training) {
  const std::vector<bool> splits = split_stages(pipeline_);
  const std::vector<MicrobatchId> last = last_forwards(pipeline_.schedule, splits.size());
  const auto offloaded = offloaded_microbatches(pipeline_);
  Stages stages;
  for (const StageId s : own_)
    stages[s] = std::make_unique<GraphStage>(
        pipeline_.graph, pipeline_.effects, pipeline_.split, s, tensors_, turns_,
        StageOptions{
            .placing = options_.placing,
            .split_backward = training && splits[s.index()],
            .plain_backward = pipeline_.plain_backward,
            .recompute =
                training && !options_.recompute.empty() && options_.recompute.at(s.index()),
            .blocks = training ? options_.blocks : std::vector<NodeRange>{},
            .kept = options_.recompute_except_last ? std::optional(last[s.index()]) : std::nullopt,
            .offloaded = training ? offloaded[s.index()] : std::set<MicrobatchId>{},
            .offload_share = options_.offload.empty() ? 1 : options_.offload.at(s.index()),
            .least_offloaded = options_.least_offloaded,
            .autocast = options_.autocast,
            .defer_batch_norm = options_.defer_batch_norm,
            .training = training,
            .seed = options_.seed});
  return stages;
}

RankWork RankPipeline::work() {
  RankWork work;
  for (const auto& [s, stage] : stages_) work.stages[s] = stage.get();
  work.contribution = [this](const Task& t, RankId other) { return shared_.part_for(t, other); };
  work.reduce = [this](const Task& t, const auto& parts) { shared_.add_up(t, parts); };
  work.row = pipeline_.schedule.rows[rank_.index()];
  work.samples = [this](MicrobatchId m) { return samples_.at(m.index()); };
  work.summand = [this](const Task& t) { return shared_.summand(t, options_.placing); };
  work.take_sum = [this](const Task& t, const Tensors& sums) { shared_.take_sum(t, sums); };
  work.copy = [this](const Action& copy, const HostEngines::Mark& mark) {
    GraphStage& stage = *stages_.at(copy.stage);
    return copy.op == Op::Offload ? stage.offload(*copy.microbatch, host_engines_, mark)
                                  : stage.reload(*copy.microbatch, host_engines_, mark);
  };
  work.await_reload = [this](const Action& reload) {
    host_engines_.await(stages_.at(reload.stage)->on_host(*reload.microbatch));
  };
  work.optimizer_step = [this](StageId s) {
    if (!updates_at_once() && !settled_) return;  // clipping and scaling need all gradients
    update_stage(s);
    replicas_.share_parameters(s);
  };
  work.settle = [this](const Tag& tag) {
    if (settles()) return settle_gradients(tag);
    // Optimizer steps follow all ranks' gradients, as the rows say, also where nothing is clipped.
    shared_.norm(/*wanted=*/false, {}, options_.placing.device, tag, transport_, replicas_);
  };
  if (replicas_.active()) {
    work.gradients_made = [this](StageId s) { replicas_.computed(s); };
    work.before_step = [this](StageId s) { replicas_.finish(s); };
    work.number = number_;
  }
  if (!options_.placing.device.is_cpu() && options_.time_actions)
    work.timed_on = options_.placing.device;
  work.entering = [this](const Cell& cell) {
    if (entering_) entering_(cell);
  };
  return work;
}

std::vector<TaskRecord> RankPipeline::step(const StepInputs& inputs) {
  if (inputs.microbatches.size() != pipeline_.microbatches)
    throw ConfigError({"step"}, stream_all("has ", inputs.microbatches.size(),
                                           " microbatches, the schedule ", pipeline_.microbatches));
  prepare(inputs, stages_);
  shares_ = shares_of(inputs);
  for (const auto& [s, stage] : stages_)
    stage->begin(inputs, shares_, factor_ ? factor_->scale() : 1);
  ++calls_;
  replicas_.begin_step(calls_);
  if (!options_.update) shared_.begin_step();  // an update leaves zeros, which add nothing
  updated_.clear(), settled_ = false;
  samples_.clear();
  for (std::size_t m = 0; m < pipeline_.microbatches; ++m)
    samples_.push_back(inputs.samples_of(MicrobatchId{m}, pipeline_.graph));
  if (options_.update) ++updates_;
  update_.learning_rate = learning_rate(options_.optimizer, static_cast<std::int64_t>(inputs.step));
  std::vector<TaskRecord> records = executor_->run(calls_);
  if (runs_ahead()) records.clear();  // of when work was given to the device
  for (const auto& [s, stage] : stages_) stage->end();
  replicas_.take_buffers();
  for (const StageId s : own_) replicas_.finish(s);  // and what the schedule did not update itself
  if (settles() && !settled_) settle_gradients({calls_, kNormTask, 0});
  for (const StageId s : own_) update_stage(s);
  for (const StageId s : own_) replicas_.share_parameters(s);
  return records;
}

/// After all gradients of the step are there: without the loss scale, and clipped; or zero, and no
/// update follows, where a gradient of any rank is not finite.
void RankPipeline::settle_gradients(const Tag& tag) {
  settled_ = true;
  for (const StageId s : own_) replicas_.finish(s);
  const double limit = options_.optimizer.clip_norm;
  const at::Tensor found = factor_ ? shared_.unscale(factor_->inverse(), replicas_) : at::Tensor();
  const double norm =
      shared_.norm(limit > 0, found, options_.placing.device, tag, transport_, replicas_);
  if (!factor_) return shared_.clip(limit, norm);
  const bool finite = std::isfinite(norm);
  factor_->update(finite);
  if (finite && limit > 0) shared_.clip(limit, norm);
  if (finite) return;
  --updates_;
  for (const StageId s : own_) updated_[s] = true;
  for (auto& [p, tensor] : tensors_.parameters)
    if (tensor.grad().defined()) tensor.mutable_grad().zero_();
}

const Graph& RankPipeline::resized(std::int64_t samples) {
  if (samples == pipeline_.graph.microbatch_size) return pipeline_.graph;
  if (const auto known = resized_.find(samples); known != resized_.end()) return known->second;
  if (!pipeline_.graph.symbolic_batch)
    throw ConfigError(
        {pipeline_.graph.name},
        stream_all("was exported for microbatches of ", pipeline_.graph.microbatch_size,
                   " samples; one of ", samples, " needs an export whose batch size is open"));
  Graph graph = source_.graph(samples);
  if (graph.digest != pipeline_.graph.digest)
    throw ConfigError({pipeline_.graph.name}, "the archive has changed since it was read");
  return resized_[samples] = std::move(graph);
}

/// Makes the stages ready for the sizes that occur, and refuses inputs that do not fit.
void RankPipeline::prepare(const StepInputs& inputs, Stages& stages) {
  for (std::size_t i = 0; i < inputs.microbatches.size(); ++i) {
    const std::int64_t samples = inputs.samples_of(MicrobatchId{i}, pipeline_.graph);
    if (samples == 0) continue;
    const Graph& graph = resized(samples);
    require_fit(graph, inputs.microbatches[i], options_.placing);
    for (auto& [s, stage] : stages) stage->add_size(graph, pipeline_.effects);
  }
}

/// [microbatch] by which its loss counts.
std::vector<double> RankPipeline::shares_of(const StepInputs& inputs) {
  if (!weights_) return inputs.shares;
  std::vector<double> shares =
      weights_->of(inputs, [this](std::int64_t n) -> const Graph& { return resized(n); });
  const double total = replicas_.sum(std::accumulate(shares.begin(), shares.end(), 0.0));
  if (total == 0)
    throw RuntimeFault(stream_all(
        "step ", inputs.step + 1, " has nothing that its loss is a mean over: the weight '",
        pipeline_.graph.value(*pipeline_.graph.loss_weight).name,
        "' of each microbatch is 0; leave out such data, or take more samples a step"));
  for (double& share : shares) share /= total;
  return shares;
}

std::optional<double> RankPipeline::mean_loss() const { return mean_of(losses(), shares_); }
std::optional<double> RankPipeline::mean_evaluation_loss() const {
  return mean_of(evaluation_losses(), evaluation_shares_);
}

/// Where the value is made; the last stage if several make it.
StageId RankPipeline::maker_of(ValueId value) const {
  const NodeId node = *pipeline_.graph.value(value).producer;
  for (std::size_t s = pipeline_.split.stages.size(); s-- > 0;)
    if (std::ranges::binary_search(pipeline_.split.stages[s].nodes, node)) return StageId{s};
  throw ConfigError({pipeline_.graph.name}, "'" + pipeline_.graph.value(value).name +
                                                "' is computed nowhere: nothing reads it");
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
  update(tensors_, replicas_.own(complete), optimizer_state_, update_, updates_);
}

void RankPipeline::evaluate(const StepInputs& inputs) {
  if (evaluation_stages_.empty()) evaluation_stages_ = make_stages(/*training=*/false);
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
  evaluation_shares_ = shares_of(inputs);
  for (auto& [s, stage] : evaluation_stages_) stage->begin(inputs, evaluation_shares_);
  const auto forward = [&](StageId s, MicrobatchId m) {
    GraphStage& stage = *evaluation_stages_.at(s);
    PerStage in;
    for (const StageId from : stage.sources())
      in.push_back(transport_.receive(pipeline_.placement.rank(from), tag(m, from, s)).tensors);
    const PerStage out = stage.forward(m, in);
    for (std::size_t d = 0; d < out.size(); ++d)
      transport_.send(pipeline_.placement.rank(stage.destinations()[d]),
                      tag(m, s, stage.destinations()[d]), out[d]);
  };
  for (std::size_t first = 0; first < inputs.microbatches.size(); first += pipeline_.microbatches)
    for (const Cell& cell : pipeline_.schedule.rows[rank_.index()])
      for_each_action(cell, [&](const Action& action) {
        if (action.op != Op::Forward) return;
        const MicrobatchId m{first + action.microbatch->index()};
        if (m.index() < inputs.microbatches.size()) forward(action.stage, m);
      });
}

std::vector<double> RankPipeline::losses() const { return losses_in(stages_); }
std::vector<double> RankPipeline::evaluation_losses() const {
  return losses_in(evaluation_stages_);
}

}  // namespace pfeife
