#include "runtime/execute/replica_gradients.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

// Below kEvaluationTask of rank_pipeline.cc.
constexpr std::uint32_t kBucketTask = ~std::uint32_t{0} - 3;
constexpr std::uint32_t kBufferTask = kBucketTask - 1, kSumTask = kBucketTask - 2;
enum Phase : std::uint32_t { kParts, kSums, kParameters, kPhases };

bool holds(const Pipeline& pipeline, StageId stage, ParameterId parameter) {
  return std::ranges::binary_search(pipeline.split.stages[stage.index()].parameters, parameter);
}

/// The last of the rank's stages in `order` that holds it; nothing if another rank holds it, too,
/// and `alone`.
std::optional<StageId> last_holder(const Pipeline& pipeline, RankId rank, ParameterId parameter,
                                   const std::vector<StageId>& order, bool& on_other_ranks) {
  std::optional<StageId> last;
  for (const StageId s : order)
    if (holds(pipeline, s, parameter)) last = s;
  for (std::size_t s = 0; s < pipeline.stages.stages; ++s)
    if (pipeline.placement.rank_of_stage[s] != rank && holds(pipeline, StageId{s}, parameter))
      on_other_ranks = true;
  return last;
}

/// The rank's stages by the last cell of their rows for which `counts`; those without, by number,
/// behind the others: so the rank updates them.
std::vector<StageId> stages_by_last(const Pipeline& pipeline, RankId rank,
                                    bool (*counts)(const Action&)) {
  std::map<StageId, std::size_t> last;
  const auto& row = pipeline.schedule.rows[rank.index()];
  for (std::size_t p = 0; p < row.size(); ++p)
    for_each_action(row[p], [&](const Action& a) {
      if (counts(a)) last[a.stage] = p;
    });
  std::vector<StageId> order;
  for (std::size_t s = 0; s < pipeline.stages.stages; ++s)
    if (pipeline.placement.rank_of_stage[s] == rank) order.emplace_back(s);
  std::ranges::stable_sort(order, {}, [&](StageId s) {
    const auto found = last.find(s);
    return found == last.end() ? row.size() : found->second;
  });
  return order;
}

at::Tensor flat(const at::Tensor& tensor, const ParameterRange& range) {
  return tensor.view({-1}).narrow(0, range.begin, range.count);
}

}  // namespace

ReplicaGradients::ReplicaGradients(const Pipeline& pipeline, RankId number, RankTensors& tensors,
                                   bool update, Transport& transport)
    : pipeline_(pipeline),
      tensors_(tensors),
      transport_(transport),
      update_(update),
      divides_(update && pipeline.replicas.zero > 0),
      replica_(pipeline.replica_of(number)),
      copies_(pipeline.copies_of(pipeline.pipeline_rank_of(number))) {
  if (!active()) return;
  const RankId rank = pipeline.pipeline_rank_of(number);
  const auto by_gradient = stages_by_last(
      pipeline, rank, +[](const Action& a) { return makes_weight_gradient(a.op); });
  const auto by_update = stages_by_last(
      pipeline, rank, +[](const Action& a) { return a.op == Op::OptimizerStep; });
  for (const StageId s : by_update) {
    for (std::uint32_t i = 0; i < 2; ++i)
      buckets_[s].push_back({{}, 2 * static_cast<std::uint32_t>(s.value) + i});
    const auto& written = pipeline.split.stages[s.index()].written_buffers;
    written_.insert(written_.end(), written.begin(), written.end());
  }
  for (auto& [p, tensor] : tensors_.parameters) {
    if (!pipeline.graph.parameters[p.index()].trainable) continue;
    if (!tensor.is_contiguous())  // its elements are counted as they lie
      tensor = tensor.detach().contiguous().set_requires_grad(true);
    // Several stages of the rank share it: with the one that is updated last, once its gradient is
    // there.
    bool shared = false;
    const std::optional<StageId> updated = last_holder(pipeline, rank, p, by_update, shared);
    const std::optional<StageId> gradient_stage =
        last_holder(pipeline, rank, p, by_gradient, shared);
    PFEIFE_CHECK(updated && gradient_stage, "a parameter of no stage");
    buckets_[*updated][shared || gradient_stage != updated ? 1 : 0].parameters.push_back(p);
  }
}

Tag ReplicaGradients::tag(const Bucket& bucket, std::uint32_t phase) const {
  return {step_, kBucketTask, bucket.number * kPhases + phase};
}

std::vector<ParameterRange> ReplicaGradients::part(const Bucket& bucket,
                                                   std::size_t replica) const {
  std::int64_t total = 0;
  for (const ParameterId p : bucket.parameters) total += tensors_.parameters.at(p).numel();
  const auto n = static_cast<std::int64_t>(copies_.size()), r = static_cast<std::int64_t>(replica);
  const std::int64_t begin = total * r / n, end = total * (r + 1) / n;
  std::vector<ParameterRange> ranges;
  std::int64_t before = 0;
  for (const ParameterId p : bucket.parameters) {
    const std::int64_t size = tensors_.parameters.at(p).numel();
    const std::int64_t from = std::max(begin - before, std::int64_t{0}),
                       to = std::min(end - before, size);
    if (from < to) ranges.push_back({p, from, to - from});
    before += size;
  }
  return ranges;
}

Tensors ReplicaGradients::gradients(const Bucket& bucket, std::size_t replica) const {
  Tensors found;
  for (const ParameterRange& range : part(bucket, replica)) {
    const at::Tensor& gradient = tensors_.parameters.at(range.parameter).grad();
    found.push_back(gradient.defined() ? flat(gradient, range) : at::Tensor());
  }
  return found;
}

void ReplicaGradients::send_to_others(Tag tag, const Tensors& tensors) {
  for (std::size_t r = 0; r < copies_.size(); ++r)
    if (r != replica_) transport_.send(copies_[r], tag, tensors);
}

void ReplicaGradients::begin_step(std::uint64_t step) {
  if (!active()) return;
  step_ = step;
  for (auto& [s, buckets] : buckets_)
    for (Bucket& bucket : buckets) bucket.handed_over = bucket.finished = bucket.updated = false;
  if (update_) return;  // an update leaves zeros, which add nothing
  for (auto& [p, tensor] : tensors_.parameters) {
    if (!tensor.grad().defined()) continue;
    earlier_[p] = tensor.grad();
    tensor.mutable_grad().reset();
  }
}

void ReplicaGradients::computed(StageId stage) {
  if (active()) hand_over(buckets_.at(stage).front());
}

void ReplicaGradients::hand_over(Bucket& bucket) {
  if (std::exchange(bucket.handed_over, true) || bucket.parameters.empty()) return;
  for (const ParameterId p : bucket.parameters)
    if (at::Tensor& gradient = tensors_.parameters.at(p).mutable_grad(); gradient.defined())
      gradient = gradient.contiguous();
  if (transport_.keeps_rows()) return hand_over_in_row(bucket);
  for (std::size_t r = 0; r < copies_.size(); ++r)
    if (r != replica_) transport_.send(copies_[r], tag(bucket, kParts), gradients(bucket, r));
}

void ReplicaGradients::hand_over_in_row(const Bucket& bucket) {
  Tensors summands;
  for (const ParameterId p : bucket.parameters) {
    at::Tensor& parameter = tensors_.parameters.at(p);
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    summands.push_back(parameter.grad());
  }
  transport_.add_up(copies_, tag(bucket, kParts), std::move(summands));
}

void ReplicaGradients::finish(StageId stage) {
  if (!active()) return;
  for (Bucket& bucket : buckets_.at(stage)) finish(bucket);
}

void ReplicaGradients::finish(Bucket& bucket) {
  if (bucket.finished) return;
  hand_over(bucket);
  bucket.finished = true;
  if (bucket.parameters.empty()) return;
  const at::NoGradGuard no_gradients;
  if (transport_.keeps_rows()) {
    const Tensors sums = transport_.sum(tag(bucket, kParts));
    for (std::size_t i = 0; i < sums.size(); ++i)
      tensors_.parameters.at(bucket.parameters[i]).mutable_grad() = sums[i];
  } else {
    const Tensors sums = added_up(bucket);
    if (!divides()) send_to_others(tag(bucket, kSums), sums);
    put(bucket, replica_, sums);
    for (std::size_t r = 0; r < copies_.size() && !divides(); ++r)
      if (r != replica_) put(bucket, r, transport_.receive(copies_[r], tag(bucket, kSums)).tensors);
  }
  for (const ParameterId p : bucket.parameters)
    if (const auto before = earlier_.extract(p)) {
      at::Tensor& gradient = tensors_.parameters.at(p).mutable_grad();
      gradient = gradient.defined() ? before.mapped() + gradient : before.mapped();
    }
}

/// Own part, in order of replicas.
Tensors ReplicaGradients::added_up(const Bucket& bucket) {
  std::vector<Tensors> parts;
  for (std::size_t r = 0; r < copies_.size(); ++r)
    parts.push_back(r == replica_ ? gradients(bucket, r)
                                  : transport_.receive(copies_[r], tag(bucket, kParts)).tensors);
  Tensors sums(parts.front().size());
  for (const Tensors& of_replica : parts)
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (of_replica.at(i).defined())
        sums[i] = sums[i].defined() ? sums[i].add_(of_replica[i]) : of_replica[i].clone();
  return sums;
}

/// Whoever adds up other parts of these gradients has read them: its sums are here, or it reads no
/// more than its own part, and this one is another.
void ReplicaGradients::put(const Bucket& bucket, std::size_t replica, const Tensors& sums) {
  const std::vector<ParameterRange> ranges = part(bucket, replica);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!sums.at(i).defined()) continue;
    at::Tensor& parameter = tensors_.parameters.at(ranges[i].parameter);
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    flat(parameter.grad(), ranges[i]).copy_(sums[i]);
  }
}

std::vector<ParameterRange> ReplicaGradients::own(std::span<const ParameterId> parameters) const {
  std::vector<ParameterRange> found;
  if (!divides()) {
    for (const ParameterId p : parameters)
      found.push_back({p, 0, tensors_.parameters.at(p).numel()});
    return found;
  }
  for (const auto& [s, buckets] : buckets_)
    for (const Bucket& bucket : buckets)
      for (const ParameterRange& range : part(bucket, replica_))
        if (std::ranges::find(parameters, range.parameter) != parameters.end())
          found.push_back(range);
  return found;
}

void ReplicaGradients::share_parameters(StageId stage) {
  if (!divides()) return;
  const at::NoGradGuard no_gradients;
  for (Bucket& bucket : buckets_.at(stage))
    if (!std::exchange(bucket.updated, true) && !bucket.parameters.empty())
      transport_.keeps_rows() ? share_in_row(bucket) : exchange_parts(bucket);
}

void ReplicaGradients::exchange_parts(const Bucket& bucket) {
  Tensors updated;
  for (const ParameterRange& range : part(bucket, replica_))
    updated.push_back(flat(tensors_.parameters.at(range.parameter).detach(), range));
  send_to_others(tag(bucket, kParameters), updated);
  for (std::size_t r = 0; r < copies_.size(); ++r) {
    if (r == replica_) continue;
    const Tensors others = transport_.receive(copies_[r], tag(bucket, kParameters)).tensors;
    const std::vector<ParameterRange> ranges = part(bucket, r);
    for (std::size_t i = 0; i < ranges.size(); ++i)
      flat(tensors_.parameters.at(ranges[i].parameter).detach(), ranges[i]).copy_(others.at(i));
  }
  // All have read: kept as zeros, as update() leaves its own.
  for (const ParameterId p : bucket.parameters)
    if (tensors_.parameters.at(p).grad().defined()) tensors_.parameters.at(p).grad().zero_();
}

/// A sum with zeros in the parts of the others.
void ReplicaGradients::share_in_row(const Bucket& bucket) {
  Tensors updated;
  for (const ParameterId p : bucket.parameters)
    updated.push_back(at::zeros_like(tensors_.parameters.at(p).detach()));
  for (const ParameterRange& range : part(bucket, replica_)) {
    const auto at =
        std::ranges::find(bucket.parameters, range.parameter) - bucket.parameters.begin();
    flat(updated[static_cast<std::size_t>(at)], range)
        .copy_(flat(tensors_.parameters.at(range.parameter).detach(), range));
  }
  transport_.add_up(copies_, tag(bucket, kParameters), std::move(updated));
  const Tensors sums = transport_.sum(tag(bucket, kParameters));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    at::Tensor& parameter = tensors_.parameters.at(bucket.parameters[i]);
    parameter.detach().copy_(sums[i]);
    if (parameter.grad().defined()) parameter.grad().zero_();
  }
}

void ReplicaGradients::take_buffers() {
  if (!active() || written_.empty()) return;
  const Tag tag{step_, kBufferTask, 0};
  const at::NoGradGuard no_gradients;
  Tensors buffers;
  for (const ValueId b : written_) buffers.push_back(tensors_.buffers.at(b));
  if (replica_ == 0) {
    for (at::Tensor& buffer : buffers) buffer = buffer.clone();  // written again in the next step
    return send_to_others(tag, buffers);
  }
  const Tensors first = transport_.receive(copies_[0], tag).tensors;
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(first.at(i));
}

double ReplicaGradients::sum(double value) {
  if (!active()) return value;
  const Tag tag{++sums_, kSumTask, 0};
  send_to_others(tag, {at::scalar_tensor(value, at::kDouble)});
  double sum = 0;
  for (std::size_t r = 0; r < copies_.size(); ++r)
    sum += r == replica_ ? value : transport_.receive(copies_[r], tag).tensors.at(0).item<double>();
  return sum;
}

}  // namespace pfeife
