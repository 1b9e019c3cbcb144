#include "planner/search/bound/any_order.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/row_game.h"
#include "planner/search/bound/segment_bound.h"

namespace pfeife {
namespace {

/// fastest_times() on the devices of the ranks.
std::vector<double> fastest(const CutModel& model, const Problem& problem,
                            const std::vector<Work>& works) {
  std::vector<std::size_t> kinds;
  for (const DeviceId device : problem.device_of_rank)
    kinds.push_back(problem.cluster->kind_of_device[device.index()]);
  return fastest_times(model, kinds, works);
}

/// [position] time before which a stage that begins there cannot start: the forwards since the last
/// position (or the model's begin) where the segment behind does not read what the one before it
/// has made, so that a stage need not wait for its neighbour.
std::vector<double> entries(const CutModel& model, const Problem& problem) {
  std::vector<double> entry = fastest(model, problem, {Work::Forward});
  double before = 0;
  for (std::size_t p = 1; p < entry.size(); ++p) {
    const auto q = static_cast<std::int32_t>(p);
    const auto crossing = model.crossing(q);
    if (std::ranges::none_of(crossing, [&](const CutModel::Crossing& c) {
          return c.producer == q - 1 && c.next == q;
        }))
      before = entry[p];
    entry[p] -= before;
  }
  return entry;
}

/// Whether cuts exist by which every rank ends its work by `time`: all of it once a microbatch can
/// have reached it on its way forward, and the backward once one has come back to it. The later a
/// rank begins in the model, the further it gets, so it suffices to give every rank as much as it
/// can do.
bool one_stage_each_suffices(const CutModel& model, const Problem& problem, double microbatches,
                             const std::vector<double>& entry, double time) {
  const std::vector<double> back = fastest(model, problem, {Work::BackwardInput});
  const double turn = entry.back() + back.back();
  const bool returns = model.all_linked();
  std::size_t begin = 0;
  for (const DeviceId device : problem.device_of_rank) {
    const std::size_t kind = model.cluster().kind_of_device[device.index()];
    const auto& load = model.load(kind);
    const auto& optimizer = model.time(kind, Work::Optimizer);
    const auto& input = model.time(kind, Work::BackwardInput);
    const auto& weight = model.time(kind, Work::BackwardWeight);
    const auto ends_in_time = [&](std::size_t end) {
      const double step = optimizer[end] - optimizer[begin];
      return entry[begin] + microbatches * (load[end] - load[begin]) + step <= time &&
             (!returns ||
              turn - back[end] +
                      microbatches * (input[end] - input[begin] + weight[end] - weight[begin]) +
                      step <=
                  time);
    };
    std::size_t low = begin, high = load.size() - 1;
    while (low < high) {
      const std::size_t middle = (low + high + 1) / 2;
      if (ends_in_time(middle))
        low = middle;
      else
        high = middle - 1;
    }
    begin = low;
  }
  return begin + 1 == entry.size();
}

/// Without dynamic programs, and transfers not at all. One stage a rank: the largest of the ranks'
/// rows for the best cuts. More stages: all work shared by the ranks.
double simple_bound(const CutModel& model, const Problem& problem, const ScheduleSpec& spec) {
  const auto n = static_cast<double>(spec.microbatches);
  const auto work =
      fastest(model, problem, {Work::Forward, Work::BackwardInput, Work::BackwardWeight});
  const auto optimizer = fastest(model, problem, {Work::Optimizer});
  const std::vector<double> entry = entries(model, problem);
  const double all = n * work.back() + optimizer.back();
  double idle = 0;  // rank r begins at position r or later
  for (std::size_t r = 0; r < std::min(spec.ranks, entry.size() - 1); ++r)
    idle += *std::min_element(entry.begin() + static_cast<std::ptrdiff_t>(r), entry.end() - 1);
  double low = std::ceil((all + idle) / static_cast<double>(spec.ranks));
  if (spec.stages_per_rank > 1) return low;
  double high = std::max(all, 1.0);
  while (!one_stage_each_suffices(model, problem, n, entry, high)) high *= 2;
  while (low < high) {  // whole nanoseconds
    const double middle = std::floor((low + high) / 2);
    if (one_stage_each_suffices(model, problem, n, entry, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// What heaviest_segment says, as a certificate has it: one stage or another ends behind the
/// segment and begins before it; whichever does, its rank's rows alone are long enough.
std::vector<CertifiedNode> whichever_stage_has(
    std::size_t segment, std::size_t stages,
    const std::function<std::vector<CertifiedWeights>(std::size_t)>& rows) {
  std::vector<CertifiedNode> tree;
  for (std::uint32_t s = 0; s + 1 < stages; ++s)
    tree.push_back({{}, CertifiedNode::Then::SplitEnd, s, static_cast<std::int64_t>(segment)});
  for (std::size_t s = stages; s-- > 0;) tree.push_back({rows(s)});
  return tree;
}

}  // namespace

AnyOrder::AnyOrder(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                   const CutClass& cuts)
    : spec_(spec), class_(cuts) {
  class_.least_load.resize(spec.stages(), 0);
  const HeaviestSegment heaviest = heaviest_segment(model, problem, spec.microbatches);
  // Gradients of all ranks are followed by the norm; optimizer steps follow that.
  const auto norm = static_cast<double>(
      least_norm_time(problem.layers, problem.norm, problem.device_of_rank, problem.cluster)
          .count());
  bound_ = simple_bound(model, problem, spec) + norm;
  AnyOrderRows rows(model, problem, spec, class_);
  if (static_cast<std::size_t>(model.last()) < spec.stages())
    bound_by_rows_ = bound_;  // there are no cuts
  if (!rows.any_cuts()) return;
  std::vector<double> first(rows.size(), 0);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const AnyOrderRow& row = rows.row(p);
    if (row.leave > 0) continue;
    if (spec.stages_per_rank == 1) alone_.push_back(row);
    if (first_.size() > row.rank) continue;  // the rows of a rank begin with its first stage
    first_.push_back(row), first[p] = 1;
  }
  const std::vector<double> weights = whole_weights(rows);
  double sum = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    sum += weights[p];
    if (weights[p] == 0) continue;
    rows_.push_back(rows.row(p));
    weights_.push_back(static_cast<std::int64_t>(weights[p]));
  }
  double by_rows = std::ceil(rows.minimum(first).scaled / static_cast<double>(spec.ranks));
  if (sum > 0) by_rows = std::max(by_rows, std::ceil(rows.minimum(weights).scaled / sum));
  bound_ = std::max(bound_, by_rows);
  bound_by_rows_ = rows.all_forward() ? bound_ : by_rows;
  if (heaviest.bound + norm <= bound_) return;
  bound_ = heaviest.bound + norm, segment_ = heaviest.segment;
  bound_by_rows_ =
      std::clamp(rows.around_segment(static_cast<std::int32_t>(*segment_)), bound_by_rows_, bound_);
  for (std::size_t s = 0; s < spec.stages(); ++s) {
    around_.emplace_back();
    for (const std::size_t p : rows.rows_around(s)) around_[s].push_back(rows.row(p));
  }
}

CertifiedProof AnyOrder::proof() const {
  CertifiedProof proof{
      .spec = spec_, .least_load = class_.least_load, .linked = class_.linked, .any_order = true};
  CertifiedNode& root = proof.tree.emplace_back();
  const auto add = [&](const AnyOrderRow& row) {
    proof.paths.push_back(row.certified(spec_.stages()));
    return static_cast<std::uint32_t>(proof.paths.size() - 1);
  };
  root.weights.resize(2);
  for (std::size_t p = 0; p < rows_.size(); ++p)
    root.weights[0].push_back({add(rows_[p]), weights_[p]});
  // What simple_bound says: all ranks together, then one after the other.
  for (const AnyOrderRow& row : first_) root.weights[1].push_back({add(row), 1});
  for (const AnyOrderRow& row : alone_) root.weights.push_back({{add(row), 1}});
  if (!segment_) return proof;
  const std::vector<CertifiedWeights> whole = std::move(root.weights);
  proof.tree = whichever_stage_has(*segment_, spec_.stages(), [&](std::size_t s) {
    std::vector<CertifiedWeights> weights;
    for (const AnyOrderRow& row : around_[s]) weights.push_back({{add(row), 1}});
    return weights;
  });
  auto& first = proof.tree.front().weights;
  first.insert(first.begin(), whole.begin(), whole.end());
  return proof;
}

}  // namespace pfeife
