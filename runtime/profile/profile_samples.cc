
#include "runtime/profile/profile_samples.h"

#include <algorithm>
#include <cmath>

#include "runtime/profile/part_steps.h"

namespace pfeife {
namespace {

struct NodeTimes {
  std::vector<Nanoseconds> median, spread;  ///< [node]
};

MeasuredSum whole(const ProfileSamples& samples, Whole pass) {
  const Samples& times = samples.whole(pass);
  const Nanoseconds typical = pass == Whole::Optimizer
                                  ? median(times)  // one a step
                                  : samples.steps.typical(static_cast<std::size_t>(pass));
  return {typical, spread(times), {}, times.size(), times.interrupted()};
}

/// What times that add up to `sum.nodes` are multiplied by, so that they add up to `sum.whole`.
double scale_of(const MeasuredSum& sum) {
  return static_cast<double>(sum.whole.count()) / static_cast<double>(sum.nodes.count());
}
Nanoseconds scaled(Nanoseconds time, double scale) {
  return Nanoseconds{std::llround(static_cast<double>(time.count()) * scale)};
}

/// Medians of the nodes, scaled so that they add up to `sum.whole`: what lies outside the nodes
/// (setting up values, autograd's walk before its first function) grows with their number, so it
/// is spread evenly over those that take part; the rest is noise and goes by their time.
NodeTimes add_up(const PassSamples& samples, MeasuredSum& sum) {
  const auto nodes = samples.nodes.size();
  NodeTimes times{std::vector<Nanoseconds>(nodes), std::vector<Nanoseconds>(nodes)};
  const auto ran = std::ranges::count(samples.ran, true);
  const Nanoseconds outside_a_node = ran > 0 ? median(samples.outside) / ran : Nanoseconds{0};
  for (std::size_t n = 0; n < nodes; ++n) {
    if (!samples.ran[n]) continue;
    times.median[n] = median(samples.nodes[n]) + outside_a_node;
    times.spread[n] = spread(samples.nodes[n]);
    sum.nodes += times.median[n];
  }
  if (sum.nodes == Nanoseconds{0}) return times;
  const double scale = scale_of(sum);
  for (auto* list : {&times.median, &times.spread})
    for (Nanoseconds& time : *list) time = scaled(time, scale);
  return times;
}

/// What each further part adds to the passes. What is less than nothing is noise: a device adds no
/// time by taking some.
std::optional<StageOverheads> overheads_of(const StepTimes& parts) {
  std::size_t count = 0;
  for (const auto& step : parts.steps())
    for (const StepTimes::Pass& pass : step) count = std::max(count, pass.kind / 3);
  if (count < 2) return std::nullopt;
  const auto further = [&](PartSteps::Pass pass) {
    Nanoseconds sum{0};
    for (std::size_t part = 0; part < count; ++part)
      sum += parts.typical(ProfileSamples::part_kind(pass, part));
    const Nanoseconds whole = parts.typical(ProfileSamples::part_kind(pass, std::nullopt));
    return std::max(sum - whole, Nanoseconds{0}) / static_cast<std::int64_t>(count - 1);
  };
  return StageOverheads{further(PartSteps::Forward), further(PartSteps::BackwardInput),
                        further(PartSteps::BackwardWeight)};
}

/// None of processes that have not waited for one another.
std::optional<MessageTimes> message_times(const StepTimes& turns) {
  const MessageTimes times{turns.typical(PartSteps::Arrival), turns.typical(PartSteps::Sending),
                           turns.typical(PartSteps::AfterWait),
                           turns.typical(PartSteps::WithoutWait), turns.typical(PartSteps::Echo)};
  if (times.arrival == Nanoseconds{0} || times.echo == Nanoseconds{0}) return std::nullopt;
  return times;
}

void add_nodes(const ProfileSamples& samples, const NodeMemory& memory, ProfileReport& report) {
  const NodeTimes f = add_up(samples.forward, report.forward),
                  i = add_up(samples.input, report.backward_input),
                  w = add_up(samples.weight, report.backward_weight);
  for (std::size_t n = 0; n < samples.forward.nodes.size(); ++n)
    report.profile.nodes.push_back({.forward = f.median[n],
                                    .backward_input = i.median[n],
                                    .backward_weight = w.median[n],
                                    .saved = memory.saved[n],
                                    .weight_saved = memory.weight_saved[n],
                                    .temporary = memory.temporary[n],
                                    .forward_spread = f.spread[n],
                                    .backward_input_spread = i.spread[n],
                                    .backward_weight_spread = w.spread[n]});
}

void add_parameters(const std::vector<Samples>& updates, const OptimizerState& state,
                    ProfileReport& report) {
  for (std::size_t p = 0; p < updates.size(); ++p) {
    ParameterProfile cost;
    cost.optimizer = median(updates[p]);
    if (const auto found = state.find(ParameterId{p}); found != state.end())
      for (const auto& [name, tensor] : found->second)
        cost.state += Bytes{static_cast<std::int64_t>(tensor.nbytes())};
    report.optimizer.nodes += cost.optimizer;
    report.profile.parameters.push_back(cost);
  }
  if (report.optimizer.nodes == Nanoseconds{0}) return;
  const double scale = scale_of(report.optimizer);
  for (ParameterProfile& cost : report.profile.parameters)
    cost.optimizer = scaled(cost.optimizer, scale);
}

}  // namespace

void PassSamples::add(const PassTimes& times) {
  outside.add(times.outside, times.interrupted);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    nodes[n].add(times.nodes[n], times.interrupted);
    ran[n] = ran[n] || times.ran[n];
  }
}

void ProfileSamples::add(Whole pass, Nanoseconds time, bool interrupted) {
  wholes[static_cast<std::size_t>(pass)].add(time, interrupted);
  // Interrupted or not: what happens to a profile's passes happens to a pipeline's.
  if (pass != Whole::Optimizer) steps.add(static_cast<std::size_t>(pass), time);
}

void ProfileSamples::append(const ProfileSamples& other) {
  std::vector<const Samples*> added;
  for_each(other, [&](const Samples& samples) { added.push_back(&samples); });
  auto next = added.begin();
  for_each(*this, [&](Samples& samples) { samples.append(**next++); });
  for (const auto passes :
       {&ProfileSamples::forward, &ProfileSamples::input, &ProfileSamples::weight})
    for (std::size_t n = 0; n < forward.nodes.size(); ++n)
      (this->*passes).ran[n] = (this->*passes).ran[n] || (other.*passes).ran[n];
  steps.append(other.steps);
  parts.append(other.parts);
  turns.append(other.turns);
}

ProfileReport report_of(const ProfileSamples& samples, const NodeMemory& memory,
                        const OptimizerState& state) {
  ProfileReport report;
  report.forward = whole(samples, Whole::Forward);
  report.backward_input = whole(samples, Whole::BackwardInput);
  report.backward_weight = whole(samples, Whole::BackwardWeight);
  report.optimizer = whole(samples, Whole::Optimizer);
  report.backward = whole(samples, Whole::Backward);
  report.split_forward = whole(samples, Whole::SplitForward);
  report.saved = memory.all_saved();
  report.weight_saved = memory.all_weight_saved();
  report.profile.source = FigureSource::Measured;
  report.profile.variation = samples.steps.found();
  report.profile.stage_overheads = overheads_of(samples.parts);
  report.messages = message_times(samples.turns);
  if (report.messages) report.profile.message_overhead = report.messages->overhead();
  report.profile.storages = memory.storages;
  add_nodes(samples, memory, report);
  add_parameters(samples.updates, state, report);
  return report;
}

}  // namespace pfeife
