#include "planner/search/price/cut_costs.h"

#include <algorithm>

#include "planner/cost/stages/stage_costs.h"

namespace pfeife {

CutCosts::CutCosts(const CutModel& model, const Placement& placement)
    : model_(model), placement_(placement) {
  std::vector<bool> seen(placement.ranks(), false);
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    const StageId id{s};
    const std::size_t rank = placement.rank(id).index();
    kind_.push_back(model.cluster().kind_of_device[placement.device(id).index()]);
    const DeviceKind& kind = model.cluster().kinds[kind_.back()];
    const bool steps = !seen[rank] && !model.forward_only();
    action_overhead_.push_back(static_cast<double>(kind.stage_overhead.count()));
    step_overhead_.push_back(steps ? static_cast<double>(kind.iteration_overhead.count()) : 0);
    is_first_.push_back(!seen[rank]);
    seen[rank] = true;
  }
  const auto ns = [](Nanoseconds time) { return static_cast<double>(time.count()); };
  exchange_ = ns(norm_exchange_time(model.norm(), placement.device_of_rank, model.cluster()));
  least_norm_ =
      ns(least_norm_time(model.layers(), model.norm(), placement.device_of_rank, model.cluster()));
  one_a_rank_ = placement.stages() == placement.ranks();
  if (one_a_rank_ && !model.layers().reductions.empty())
    first_reduction_ = static_cast<double>(model.layers().reductions.front().time.count());
  double overhead = exchange_;
  if (model.norm() == StepNorm::Clipped) overhead += longest_clipping();
  for (const LayerReduction& reduction : model.layers().reductions)
    overhead += static_cast<double>(reduction.time.count());
  is_narrow_ = true;
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    overhead += 2 * action_overhead_[s] + step_overhead_[s];
    is_narrow_ = is_narrow_ && !model.narrow_times(kind_[s]).empty() && overhead < 0x1p30;
    const Program::Narrow action = Program::narrow(action_overhead_[s]);
    narrow_overhead_.push_back({action, action, 0, Program::narrow(step_overhead_[s])});
  }
  const std::size_t positions = static_cast<std::size_t>(model.last()) + 1;
  known_.resize(placement.stages() * free_positions(placement.stages(), positions));
  double latency = 0, slowness = 0;  // of the worst path, ns and ns a byte
  for (const Path& path : model.cluster().paths) {
    latency = std::max(latency, static_cast<double>(path.latency.count()));
    for (const BandwidthCurve::Point& point : path.bandwidth.points)
      if (point.rate.value > 0) slowness = std::max(slowness, 1e9 / point.rate.value);
  }
  longest_message_.assign(positions, 0.0);
  for (std::size_t q = 0; q < positions; ++q) {
    double bytes = 0, published = 0;
    for (const CutModel::Crossing& c : model.crossing(static_cast<std::int32_t>(q))) {
      const LayerValue& value = model.layers().values[static_cast<std::size_t>(c.value)];
      if (value.transfer_time) published += static_cast<double>(value.transfer_time->count());
      bytes += static_cast<double>(std::max(value.bytes, value.gradient_bytes).value);
    }
    longest_message_[q] = latency + published + bytes * slowness + 1;
  }
}

void CutCosts::BothWays::add(const LayerValue& value) {
  forward.add(value, value.bytes);
  if (value.has_gradient) backward.add(value, value.gradient_bytes);
}

CutCosts::Latency CutCosts::latency(std::size_t from, std::size_t to,
                                    const BothWays& message) const {
  Latency found;
  const RankId a = placement_.rank_of_stage[from], b = placement_.rank_of_stage[to];
  if (a == b) return {0, 0};
  const DeviceId source = placement_.device(a), target = placement_.device(b);
  const Cluster& cluster = model_.cluster();
  const auto time = [&](const TimedMessage& one_way, DeviceId sender, DeviceId receiver) {
    return static_cast<double>(one_way.time(cluster.path(sender, receiver)).count());
  };
  if (!message.forward.empty()) found.forward = time(message.forward, source, target);
  if (model_.forward_only())
    found.backward = message.backward.empty() ? Program::kNever : 0;  // nothing comes back
  else if (!message.backward.empty())
    found.backward = time(message.backward, target, source);
  return found;
}

const CutCosts::Known& CutCosts::neighbour(std::size_t i, const Cuts& cuts) {
  const std::int32_t q = cuts[i], before = cuts[i - 1], after = cuts[i + 1];
  const std::size_t width = free_positions(placement_.stages(), longest_message_.size());
  Known& known = known_[i * width + static_cast<std::size_t>(q) - i];
  if (known.before != before || known.after != after) renew(known, i, q, before, after);
  return known;
}

void CutCosts::renew(Known& known, std::size_t i, std::int32_t q, std::int32_t before,
                     std::int32_t after) {
  known.before = before, known.after = after;
  const auto list = model_.crossing(q);
  const CutModel::Extent& extent = model_.extent(q);
  std::uint64_t mask = 1;  // 0 = nothing known yet
  const bool all = extent.first_producer >= before && extent.last_next < after;
  if (all)
    mask = ~std::uint64_t{0};
  else if (list.size() < 63)
    for (std::size_t k = 0; k < list.size(); ++k)
      mask |= std::uint64_t{list[k].producer >= before && list[k].next < after} << (k + 1);
  else
    mask = 0;
  if (mask != 0 && known.mask == mask) return;
  BothWays message;
  for (const CutModel::Crossing& c : list)
    if (c.producer >= before && c.next < after)
      message.add(model_.layers().values[static_cast<std::size_t>(c.value)]);
  known.mask = mask, known.latency = latency(i - 1, i, message);
  known.narrow = {Program::narrow(known.latency.forward), Program::narrow(known.latency.backward)};
}

CutCosts::Latency CutCosts::least_latency(std::size_t i, std::int32_t q, std::int32_t latest_begin,
                                          std::int32_t earliest_end) const {
  BothWays message;
  for (const CutModel::Crossing& c : model_.crossing(q))
    if (c.producer >= latest_begin && c.next < earliest_end)
      message.add(model_.layers().values[static_cast<std::size_t>(c.value)]);
  return latency(i - 1, i, message);
}

bool CutCosts::always_linked(std::size_t i, std::int32_t q, std::int32_t latest_begin,
                             std::int32_t earliest_end) const {
  if (!crosses_ranks(i)) return true;
  const Waits waits = common_waits(q, latest_begin, earliest_end);
  return waits.forward && waits.backward;
}

CutCosts::Waits CutCosts::common_waits(std::int32_t q, std::int32_t latest_begin,
                                       std::int32_t earliest_end) const {
  Waits waits;
  for (const CutModel::Crossing& c : model_.crossing(q)) {
    if (c.producer < latest_begin || c.next >= earliest_end) continue;
    waits.forward = true;
    const LayerValue& value = model_.layers().values[static_cast<std::size_t>(c.value)];
    waits.backward = waits.backward || value.has_gradient;
  }
  return waits;
}

CutCosts::Latency CutCosts::linked_latency(std::size_t i, std::int32_t q, std::int32_t first,
                                           std::int32_t last) const {
  Latency least;
  const auto note = [](double& so_far, double time) {
    if (time != Program::kNever && (so_far == Program::kNever || time < so_far)) so_far = time;
  };
  for (const CutModel::Crossing& c : model_.crossing(q)) {
    if (c.producer < first || c.next >= last) continue;
    BothWays alone;
    alone.add(model_.layers().values[static_cast<std::size_t>(c.value)]);
    const Latency crossing_latency = latency(i - 1, i, alone);
    note(least.forward, crossing_latency.forward), note(least.backward, crossing_latency.backward);
  }
  return least;
}

void CutCosts::price_works(const Cuts& cuts, const Program& program, double* durations,
                           std::size_t stride, const std::vector<bool>* recompute,
                           const std::vector<double>* again) const {
  for (std::size_t s = 0; s < program.stages(); ++s) {
    const auto begin = static_cast<std::size_t>(cuts[s]),
               end = static_cast<std::size_t>(cuts[s + 1]);
    const auto sum = [&](Work w) {
      const std::vector<double>& prefix = model_.time(kind_[s], w);
      return prefix[end] - prefix[begin];
    };
    durations[program.work(Work::Forward, s) * stride] = sum(Work::Forward) + action_overhead_[s];
    durations[program.last_input(s) * stride] =
        durations[program.work(Work::BackwardInput, s) * stride] =
            sum(Work::BackwardInput) + action_overhead_[s];
    if (recompute && (*recompute)[s])
      durations[program.work(Work::BackwardInput, s) * stride] += sum(Work::Forward);
    if (again) durations[program.work(Work::BackwardInput, s) * stride] += (*again)[s];
    durations[program.work(Work::BackwardWeight, s) * stride] = sum(Work::BackwardWeight);
    durations[program.work(Work::Optimizer, s) * stride] = sum(Work::Optimizer) + step_overhead_[s];
  }
}

void CutCosts::price_works(const Cuts& cuts, const Program& program, Program::Narrow* durations,
                           std::size_t stride) const {
  for (std::size_t s = 0; s < program.stages(); ++s) {
    const auto* const times = model_.narrow_times(kind_[s]).data();
    const auto& begin = times[cuts[s]];
    const auto& end = times[cuts[s + 1]];
    for (std::size_t w = 0; w < kWorks; ++w)
      durations[program.work(static_cast<Work>(w), s) * stride] =
          end[w] - begin[w] + narrow_overhead_[s][w];
    durations[program.last_input(s) * stride] =
        durations[program.work(Work::BackwardInput, s) * stride];
  }
}

bool CutCosts::has_skips(const Cuts& cuts) const {
  bool any = false;
  for (std::size_t s = 1; s + 1 < cuts.size(); ++s)
    any = any || model_.extent(cuts[s]).last_reader >= cuts[s + 1];
  return any;
}

template <class Number>
static Number as(double duration) {
  if constexpr (std::is_same_v<Number, Program::Narrow>)
    return Program::narrow(duration);
  else
    return duration;
}

template <class Number>
CutCosts::Priced CutCosts::price_rest(const Cuts& cuts, const Program& program, Number* durations,
                                      std::size_t stride) {
  const std::size_t stages = program.stages();
  durations[program.forward_latency(0) * stride] = durations[program.backward_latency(0) * stride] =
      0;
  for (std::size_t i = 1; i < stages; ++i) {
    const Known& known = neighbour(i, cuts);
    Number& forward = durations[program.forward_latency(i) * stride];
    Number& backward = durations[program.backward_latency(i) * stride];
    if constexpr (std::is_same_v<Number, Program::Narrow>)
      forward = known.narrow[0], backward = known.narrow[1];
    else
      forward = known.latency.forward, backward = known.latency.backward;
  }
  Priced priced;
  if (has_skips(cuts))
    priced.exact = skips_are_short(cuts, program, durations, stride) ||
                   !skip_may_bind(cuts, program, durations, stride);
  if (!model_.shared_parameters().empty())
    if (const ReductionTail* tail = reductions(cuts, program, durations, stride)) {
      for (std::size_t s = 0; s < stages; ++s) {
        Number& optimizer = durations[program.work(Work::Optimizer, s) * stride];
        optimizer = as<Number>(static_cast<double>(optimizer) + tail->extra_optimizer[s]);
      }
      if (!tail->groups.empty()) priced.tail = tail;
    }
  std::optional<double> behind_all;
  if (model_.norm() != StepNorm::None) behind_all = price_norm(cuts, program, durations, stride);
  const bool one_each = one_a_rank_ && priced.tail == nullptr;
  if (model_.has_reductions() && one_each)
    price_replicas(cuts, program, durations, stride);
  else if (model_.has_reductions() || (behind_all && priced.tail != nullptr))
    priced.tail = &own_tail(cuts, priced.tail, behind_all);
  return priced;
}

/// All ranks' optimizer steps follow the last gradient of any, so that each rank may take as long
/// as the slowest: the durations say so once a rank.
template <class Number>
double CutCosts::price_norm(const Cuts& cuts, const Program& program, Number* durations,
                            std::size_t stride) const {
  thread_local std::vector<double> steps;
  steps.assign(placement_.ranks(), 0.0);
  for (std::size_t s = 0; s < program.stages(); ++s)
    steps[placement_.rank_of_stage[s].index()] +=
        static_cast<double>(durations[program.work(Work::Optimizer, s) * stride]);
  const double norm = exchange_ + (model_.norm() == StepNorm::Clipped ? clipping(cuts) : 0);
  const double behind_all = norm + std::ranges::max(steps);
  for (std::size_t s = 0; s < program.stages(); ++s)
    durations[program.work(Work::Optimizer, s) * stride] =
        as<Number>(is_first_[s] ? behind_all : 0);
  return behind_all;
}

/// No rank takes longer, whatever the cuts.
double CutCosts::longest_clipping() const {
  CutModel::Gradients all = model_.own_gradients(0, model_.last());
  for (const Bytes gradient : model_.shared_gradients()) all.bytes += gradient, ++all.parameters;
  Nanoseconds longest{0};
  for (const DeviceId device : placement_.device_of_rank)
    longest =
        std::max(longest, clipping_time(model_.cluster().kind(device), all.bytes, all.parameters));
  return static_cast<double>(longest.count());
}

/// What the slowest rank takes to clip.
double CutCosts::clipping(const Cuts& cuts) const {
  thread_local std::vector<CutModel::Gradients> held;
  held.assign(placement_.ranks(), {});
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    const CutModel::Gradients own = model_.own_gradients(cuts[s], cuts[s + 1]);
    CutModel::Gradients& of = held[placement_.rank_of_stage[s].index()];
    of.bytes += own.bytes, of.parameters += own.parameters;
  }
  std::vector<std::size_t> ranks;
  for (std::size_t p = 0; p < model_.shared_parameters().size(); ++p) {
    if (model_.shared_gradients()[p] == Bytes{0}) continue;
    ranks.clear();
    for (const std::int32_t user : model_.shared_parameters()[p]) {
      const auto stage = std::upper_bound(cuts.begin(), cuts.end(), user) - cuts.begin() - 1;
      const std::size_t rank = placement_.rank_of_stage[static_cast<std::size_t>(stage)].index();
      if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
    }
    for (const std::size_t r : ranks)
      held[r].bytes += model_.shared_gradients()[p], ++held[r].parameters;
  }
  Nanoseconds longest{0};
  for (std::size_t r = 0; r < held.size(); ++r) {
    const DeviceId device = placement_.device_of_rank[r];
    longest = std::max(
        longest, clipping_time(model_.cluster().kind(device), held[r].bytes, held[r].parameters));
  }
  return static_cast<double>(longest.count());
}

/// With one stage a rank, the optimizer step is behind the stage's own reductions: as if it took
/// that much longer.
template <class Number>
void CutCosts::price_replicas(const Cuts& cuts, const Program& program, Number* durations,
                              std::size_t stride) const {
  for (std::size_t s = 0; s < program.stages(); ++s)
    durations[program.work(Work::Optimizer, s) * stride] +=
        as<Number>(model_.exposed_reduction(cuts[s], cuts[s + 1]));
}

const ReductionTail& CutCosts::own_tail(const Cuts& cuts, const ReductionTail* reductions,
                                        std::optional<double> behind_all) {
  own_tail_ = reductions != nullptr ? *reductions : ReductionTail{};
  own_tail_.behind_all = behind_all;
  for (std::size_t s = 0; model_.has_reductions() && s < placement_.stages(); ++s) {
    const double behind = model_.exposed_reduction(cuts[s], cuts[s + 1]);
    own_tail_.replicas.push_back({model_.whole_reduction(cuts[s], cuts[s + 1]) - behind, behind});
  }
  return own_tail_;
}

CutCosts::Priced CutCosts::price(const Cuts& cuts, const Program& program, double* durations,
                                 std::size_t stride, const std::vector<bool>* recompute,
                                 const std::vector<double>* again) {
  price_works(cuts, program, durations, stride, recompute, again);
  return price_rest(cuts, program, durations, stride);
}
CutCosts::Priced CutCosts::price(const Cuts& cuts, const Program& program,
                                 Program::Narrow* durations, std::size_t stride) {
  price_works(cuts, program, durations, stride);
  return price_rest(cuts, program, durations, stride);
}

template <class Number>
bool CutCosts::link_all(const Cuts& cuts, const Program& program, Number* durations,
                        std::size_t stride) {
  for (std::size_t i = 1; i < program.stages(); ++i)
    for (const std::size_t at : {program.forward_latency(i), program.backward_latency(i)})
      if (durations[at * stride] == as<Number>(Program::kNever)) durations[at * stride] = 0;
  return skips_are_short(cuts, program, durations, stride) ||
         !skip_may_bind(cuts, program, durations, stride);
}
template bool CutCosts::link_all(const Cuts&, const Program&, double*, std::size_t);
template bool CutCosts::link_all(const Cuts&, const Program&, Program::Narrow*, std::size_t);

template <class Number>
bool CutCosts::skips_are_short(const Cuts& cuts, const Program& program, const Number* durations,
                               std::size_t stride) const {
  for (std::size_t s = 1; s < program.stages(); ++s) {
    if (durations[program.forward_latency(s) * stride] == as<Number>(Program::kNever) ||
        durations[program.backward_latency(s) * stride] == as<Number>(Program::kNever))
      return false;
    if (model_.extent(cuts[s]).last_reader < cuts[s + 1]) continue;
    const double message = std::min(longest_message_[static_cast<std::size_t>(cuts[s])],
                                    longest_message_[static_cast<std::size_t>(cuts[s + 1])]);
    if (message > durations[program.work(Work::Forward, s) * stride] ||
        message > durations[program.last_input(s) * stride])
      return false;
  }
  return true;
}

template <class Visit>
bool CutCosts::any_skip(const Cuts& cuts, const Visit& visit) const {
  const std::size_t stages = placement_.stages();
  std::vector<BothWays> to(stages);
  for (std::size_t s = 0; s + 2 < stages; ++s) {
    std::size_t farthest = s;  // stage that a value of s skips to
    for (const CutModel::Crossing& c : model_.crossing(cuts[s + 1])) {
      if (c.producer < cuts[s]) continue;
      const auto value = static_cast<std::size_t>(c.value);
      const std::vector<std::int32_t>& readers = model_.readers(value);
      std::size_t t = s + 1;
      for (auto reader = std::ranges::lower_bound(readers, cuts[s + 2]); reader != readers.end();
           reader = std::ranges::lower_bound(readers, cuts[t + 1])) {
        while (cuts[t + 1] <= *reader) ++t;
        to[t].add(model_.layers().values[value]);
        farthest = std::max(farthest, t);
      }
    }
    for (std::size_t t = s + 2; t <= farthest; ++t) {
      if (!to[t].forward.empty() && placement_.rank_of_stage[s] != placement_.rank_of_stage[t] &&
          visit(s, t, to[t]))
        return true;
      to[t] = {};
    }
  }
  return false;
}

template <class Number>
bool CutCosts::skip_may_bind(const Cuts& cuts, const Program& program, const Number* durations,
                             std::size_t stride) const {
  const auto duration = [&](std::size_t index) {
    const Number found = durations[index * stride];
    return found == as<Number>(Program::kNever) ? Program::kNever : static_cast<double>(found);
  };
  std::size_t first = program.stages(), last = 0;  // the chain from stage `first` to `last`
  double forward = 0, backward = 0;                // how long it takes each way
  return any_skip(cuts, [&](std::size_t s, std::size_t t, const BothWays& message) {
    if (s != first) {
      first = s, last = s + 1;
      forward = duration(program.forward_latency(last));
      backward = duration(program.backward_latency(last));
    }
    for (; last < t; ++last) {
      forward +=
          duration(program.work(Work::Forward, last)) + duration(program.forward_latency(last + 1));
      backward += duration(program.last_input(last)) + duration(program.backward_latency(last + 1));
    }
    const Latency skip = latency(s, t, message);
    return skip.forward > forward || skip.backward > backward;
  });
}

std::vector<SkipTransfer> CutCosts::skips(const Cuts& cuts) const {
  std::vector<SkipTransfer> found;
  any_skip(cuts, [&](std::size_t s, std::size_t t, const BothWays& message) {
    const Latency skip = latency(s, t, message);
    found.push_back({s, t, skip.forward, skip.backward});
    return false;
  });
  return found;
}

template <class Number>
const ReductionTail* CutCosts::reductions(const Cuts& cuts, const Program& program,
                                          const Number* durations, std::size_t stride) {
  std::vector<std::int32_t> signature;
  bool split = false;
  for (const std::vector<std::int32_t>& users : model_.shared_parameters()) {
    std::int32_t last = -1;
    for (const std::int32_t user : users) {
      const auto stage = static_cast<std::int32_t>(
          std::upper_bound(cuts.begin(), cuts.end(), user) - cuts.begin() - 1);
      if (stage == last) continue;
      split = split || last >= 0;
      signature.push_back(last = stage);
    }
    signature.push_back(-1);
  }
  if (!split) return nullptr;
  const auto [at, added] = tails_.try_emplace(std::move(signature));
  ReductionTail& tail = at->second;
  if (added) {
    const StageCosts costs =
        stage_costs(model_.sums(), model_.partition(cuts), placement_, model_.cluster());
    for (std::size_t s = 0; s < program.stages(); ++s)
      tail.extra_optimizer.push_back(static_cast<double>(costs.stages[s].optimizer.count()) -
                                     durations[program.work(Work::Optimizer, s) * stride]);
    for (const StageReduction& reduction : costs.reductions) {
      ReductionTail::Group group{{}, static_cast<double>(reduction.time.count())};
      for (const StageId s : reduction.stages) group.stages.push_back(s.index());
      tail.groups.push_back(std::move(group));
    }
  }
  return &tail;
}

}  // namespace pfeife
