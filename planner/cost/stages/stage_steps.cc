#include "planner/cost/stages/stage_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace pfeife {
namespace {

using Part = Nanoseconds PassStep::*;

/// Makes the parts of the steps of one sort (communication or compute) `target` together, each in
/// proportion. Returns what they cannot have.
Nanoseconds fit(std::span<PassStep> steps, Part part, bool communication, Nanoseconds target) {
  Nanoseconds sum{0};
  for (const PassStep& step : steps)
    if (communicates(step.kind) == communication) sum += step.*part;
  if (sum == Nanoseconds{0} || (communication && sum <= target)) return target - sum;
  Nanoseconds so_far{0}, given{0};
  for (PassStep& step : steps) {
    if (communicates(step.kind) != communication) continue;
    so_far += step.*part;
    const Nanoseconds until{
        std::llround(static_cast<double>(target.count()) * static_cast<double>(so_far.count()) /
                     static_cast<double>(sum.count()))};
    step.*part = until - given;
    given = until;
  }
  return Nanoseconds{0};
}

/// The steps of a layer, as long as its times and collectives say.
std::vector<PassStep> layer_steps(const Layers& layers, std::size_t l, std::size_t kind) {
  std::vector<PassStep> steps = layers.steps[l];
  const LayerTimes& times = layers.layers[l].times.at(kind);
  const LayerCollectives waits =
      layers.collectives.empty() ? LayerCollectives{} : layers.collectives[l];
  const PassStep compute{
      .kind = WorkKind::Compute,
      .forward = fit(steps, &PassStep::forward, false, times.forward - waits.forward),
      .backward = fit(steps, &PassStep::backward, false, times.backward_input - waits.backward),
      .weight = fit(steps, &PassStep::weight, false, times.backward_weight)};
  const PassStep weights{.kind = WorkKind::Weights,
                         .forward = fit(steps, &PassStep::forward, true, waits.forward),
                         .backward = fit(steps, &PassStep::backward, true, waits.backward)};
  for (const PassStep& lacking : {compute, weights})
    if (lacking != PassStep{.kind = lacking.kind}) steps.insert(steps.begin(), lacking);
  return steps;
}

class ProgramWriter {
 public:
  explicit ProgramWriter(double overlap_factor) : overlap_factor_(overlap_factor) {}

  void begin_chain() { last_.reset(); }
  /// Behind the chain's last piece.
  void chain(WorkKind kind, Nanoseconds time) {
    if (time > Nanoseconds{0}) last_ = add(kind, time);
  }
  void beside_chain(WorkKind kind, Nanoseconds time) {
    if (time > Nanoseconds{0}) add(kind, time);
  }
  std::vector<WorkPiece> written() { return std::move(program_); }

 private:
  std::uint32_t add(WorkKind kind, Nanoseconds time) {
    WorkPiece piece{.kind = kind, .time = time};
    if (communicates(kind))
      piece.stream = kCommunicationStream;
    else
      piece.time = Nanoseconds{std::llround(static_cast<double>(time.count()) * overlap_factor_)};
    if (last_) piece.after = {*last_};
    program_.push_back(std::move(piece));
    return static_cast<std::uint32_t>(program_.size() - 1);
  }

  double overlap_factor_;
  std::vector<WorkPiece> program_;
  std::optional<std::uint32_t> last_;
};

/// Pairs of stages, each distinct one scheduled once.
class PairTimes {
 public:
  PairTimes(std::vector<StageSteps> stages, double overlap_factor)
      : stages_(std::move(stages)), overlap_factor_(overlap_factor) {
    for (std::size_t s = 0; s < stages_.size(); ++s)
      like_.push_back(
          static_cast<std::size_t>(std::ranges::find(stages_, stages_[s]) - stages_.begin()));
  }

  StageCosts::SideBySide times(std::size_t forward, std::size_t backward) {
    const auto [found, is_new] = known_.try_emplace({like_[forward], like_[backward]});
    if (is_new)
      found->second = {span(forward, backward, BackwardPart::Whole),
                       span(forward, backward, BackwardPart::Input)};
    return {StageId{forward}, StageId{backward}, found->second.first, found->second.second};
  }

 private:
  Nanoseconds span(std::size_t forward, std::size_t backward, BackwardPart part) const {
    return run_streams(
               side_by_side_program(stages_[forward], stages_[backward], part, overlap_factor_))
        .span;
  }

  const std::vector<StageSteps> stages_;
  double overlap_factor_;
  std::vector<std::size_t> like_;  // [stage] the first one with the same steps
  std::map<std::pair<std::size_t, std::size_t>, std::pair<Nanoseconds, Nanoseconds>> known_;
};

}  // namespace

std::vector<StageSteps> stage_steps(const Layers& layers, const Partition& partition,
                                    const Placement& placement, const Cluster& cluster,
                                    const std::vector<StageCost>& stages) {
  std::vector<StageSteps> result;
  for (std::size_t s = 0; s < partition.stages(); ++s) {
    const std::size_t kind = cluster.kind_of_device[placement.device(StageId{s}).index()];
    StageSteps stage{stages[s].forward, stages[s].backward_input, {}};
    for (std::size_t l = partition.begin(s); l < partition.end(s, layers.size()); ++l)
      for (const PassStep& step : layer_steps(layers, l, kind)) {
        stage.before_forward -= step.forward, stage.before_backward -= step.backward;
        stage.steps.push_back(step);
      }
    result.push_back(std::move(stage));
  }
  return result;
}

std::vector<WorkPiece> side_by_side_program(const StageSteps& forward, const StageSteps& backward,
                                            BackwardPart part, double overlap_factor) {
  ProgramWriter writer(overlap_factor);
  writer.chain(WorkKind::Compute, forward.before_forward);
  for (const PassStep& step : forward.steps) writer.chain(step.kind, step.forward);
  writer.begin_chain();
  writer.chain(WorkKind::Compute, backward.before_backward);
  for (auto step = backward.steps.rbegin(); step != backward.steps.rend(); ++step) {
    writer.chain(step->kind, step->backward);
    if (part == BackwardPart::Whole) writer.beside_chain(WorkKind::WeightGradient, step->weight);
  }
  return writer.written();
}

void add_side_by_side(const Layers& layers, const Partition& partition, const Placement& placement,
                      const Cluster& cluster, StageCosts& costs) {
  if (layers.steps.empty()) return;
  const auto pairs = [&](const std::vector<StageCost>& stages) {
    PairTimes times(stage_steps(layers, partition, placement, cluster, stages),
                    costs.overlap_factor);
    std::vector<StageCosts::SideBySide> found;
    for (std::size_t a = 0; a < partition.stages(); ++a)
      for (std::size_t b = 0; b < partition.stages(); ++b)
        if (placement.rank(StageId{a}) == placement.rank(StageId{b}))
          found.push_back(times.times(a, b));
    return found;
  };
  costs.side_by_side = pairs(costs.stages);
  if (!costs.last.stages.empty()) costs.last.side_by_side = pairs(costs.last.stages);
}

}  // namespace pfeife
