#include "experiments/sweep/batches.h"

#include <algorithm>
#include <cmath>

#include "experiments/plans/case_problem.h"
#include "experiments/plans/evaluated_case.h"
#include "experiments/sweep/single_case.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/basics/parallel.h"
#include "planner/ir/schedule/jitter.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

std::int64_t whole_at(const CsvTable& table, std::size_t row, const std::string& column,
                      std::int64_t least) {
  const CsvCell& cell = table.at(row, column);
  const double number = number_of(cell, column);
  if (number != std::floor(number) || number < static_cast<double>(least) || number > 1e9)
    throw ConfigError(cell.where, column + " must be a whole number of at least " +
                                      std::to_string(least) + ", found " + cell.text);
  return static_cast<std::int64_t>(number);
}

/// Opens the next of `list` if `number` asks for it.
template <class List>
void open_next(const CsvCell& cell, std::size_t number, const std::string& what, List& list) {
  if (number == list.size()) list.emplace_back();
  if (number + 1 != list.size())
    throw ConfigError(
        cell.where, what + " are numbered from 0 on and stand in their order, found " + cell.text +
                        " after " + std::to_string(list.size()) + " of them");
}

/// A plan that was found for one batch, with what its steps with others are priced with. Cuts are
/// numbered by its own layers: those of other plans may be finer (plan.cuts_at: auto).
struct FoundPlan {
  Choice choice;
  Layers layers;
  Cluster cluster;
  Request request;
  Recompute recompute = Recompute::None;

  std::vector<MicrobatchScale> scales(const DocumentLengths& batch) const {
    return scales_of_documents(batch, layers.sequence->tokens, layers.microbatch_size);
  }
  /// The estimate; nothing if the plan does not fit the devices with such microbatches.
  std::optional<Nanoseconds> step(const DocumentLengths& batch) const {
    Layers packed = layers;
    packed.microbatches = without_equal_ones(scales(batch));
    const Problem problem = settled_problem({&request, &packed, &cluster}, recompute);
    const auto plan = fitting(problem, choice);
    return plan ? std::optional(plan->estimate) : std::nullopt;
  }
};

/// One microbatch of as much work as the mean of all.
MicrobatchScale mean_scale(const FoundPlan& plan, const std::vector<DocumentLengths>& batches) {
  MicrobatchScale mean{0, 0};
  std::size_t count = 0;
  for (const DocumentLengths& batch : batches)
    for (const MicrobatchScale& scale : plan.scales(batch))
      mean.linear += scale.linear, mean.attention += scale.attention, ++count;
  const auto all = static_cast<double>(count);
  return {mean.linear / all, mean.attention / all};
}

/// Finds plans one after another and keeps what is needed of each.
class BatchPlanner {
 public:
  BatchPlanner(const BatchesQuestion& question, std::size_t threads)
      : single_(read_single_case(question.config, question.settings, "batches")),
        batches_(read_batches(question.lengths)),
        order_(question.order),
        threads_(threads) {}

  const std::vector<DocumentLengths>& batches() const { return batches_; }

  Request request_of_batch(std::size_t batch) const {
    Request request = single_.request();
    request.training.lengths = batches_[batch];
    request.training.microbatch_costs.clear();
    request.microbatches = batches_[batch].size();
    request.plan.search_microbatch_order = order_;
    return request;
  }
  Request request_of_mean() const {
    Request request = request_of_batch(0);
    request.training.lengths.clear();
    request.training.microbatch_costs.assign(batches_.front().size(),
                                             mean_scale(found_.front(), batches_));
    request.plan.search_microbatch_order = false;
    return request;
  }

  Planned planned(const Request& request) const { return single_.planned(request, threads_); }

  /// Returns the number of the plan among those that differ.
  std::size_t add(const Request& request, std::optional<std::size_t> from) {
    const Planned answer = planned(request);
    const EvaluatedCase& evaluated = *answer.evaluated;
    const Evaluation& best = evaluated.planned[evaluated.chosen];
    FoundPlan found{*best.choice, *best.inputs.layers, *best.inputs.cluster, *evaluated.settled,
                    evaluated.answer().recompute};
    for (std::size_t p = 0; p < found_.size(); ++p)
      if (found_[p].choice == found.choice && found_[p].layers.layers == found.layers.layers)
        return p;
    plans_.push_back({name_of(found.choice), from, {}});
    found_.push_back(std::move(found));
    return found_.size() - 1;
  }

  const std::vector<BatchSteps>& plans() const { return plans_; }
  /// [plan][batch] The step; nothing if the plan does not fit the devices with that batch.
  std::vector<std::vector<std::optional<Nanoseconds>>> steps() const {
    std::vector<std::vector<std::optional<Nanoseconds>>> steps(found_.size());
    parallel_for(found_.size(), threads_, [&](std::size_t p) {
      for (const DocumentLengths& batch : batches_) steps[p].push_back(found_[p].step(batch));
    });
    return steps;
  }

 private:
  SingleCase single_;
  std::vector<DocumentLengths> batches_;
  bool order_;
  std::size_t threads_;
  std::vector<FoundPlan> found_;
  std::vector<BatchSteps> plans_;  // without steps
};

}  // namespace

std::vector<DocumentLengths> read_batches(const std::filesystem::path& file) {
  const CsvTable table = CsvTable::parse(read_text_file(file));
  table.check_columns({"batch", "microbatch", "length"});
  std::vector<DocumentLengths> batches;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto b = static_cast<std::size_t>(whole_at(table, row, "batch", 0));
    open_next(table.at(row, "batch"), b, "batches", batches);
    const auto m = static_cast<std::size_t>(whole_at(table, row, "microbatch", 0));
    open_next(table.at(row, "microbatch"), m, "microbatches of a batch", batches[b]);
    batches[b][m].push_back(whole_at(table, row, "length", 1));
  }
  if (batches.empty()) throw ConfigError({file.string()}, "has no documents");
  for (std::size_t b = 1; b < batches.size(); ++b)
    if (batches[b].size() != batches[0].size())
      throw ConfigError({file.string()},
                        "batch " + std::to_string(b) + " has " + std::to_string(batches[b].size()) +
                            " microbatches, and batch 0 has " + std::to_string(batches[0].size()) +
                            "; a plan is for one number of them: pack every batch into as many "
                            "(pfeife-exp pack --microbatches)");
  return batches;
}

Nanoseconds BatchSteps::mean() const {
  Nanoseconds sum{0};
  for (const Nanoseconds step : steps) sum += step;
  return sum / static_cast<std::int64_t>(steps.size());
}

Nanoseconds BatchSteps::p95() const { return quantile(steps, 0.95); }

BatchesAnswer plan_batches(const BatchesQuestion& question, std::size_t threads,
                           const std::function<void(std::size_t)>& progress) {
  BatchPlanner planner(question, threads);
  const std::size_t count = planner.batches().size();
  for (std::size_t b = 0; b < count; ++b) {
    planner.add(planner.request_of_batch(b), b);
    if (progress) progress(b);
  }
  const std::size_t of_mean = planner.add(planner.request_of_mean(), std::nullopt);
  BatchesAnswer answer{.plans = planner.plans().size()};
  answer.replanned.steps.assign(count, Nanoseconds::max());
  const auto figure = [&](const BatchSteps& plan) {
    return question.by_p95 ? plan.p95() : plan.mean();
  };
  const auto steps = planner.steps();
  for (std::size_t p = 0; p < steps.size(); ++p) {
    BatchSteps plan = planner.plans()[p];
    for (std::size_t b = 0; b < count; ++b) {
      if (!steps[p][b]) continue;
      plan.steps.push_back(*steps[p][b]);
      answer.replanned.steps[b] = std::min(answer.replanned.steps[b], *steps[p][b]);
    }
    if (plan.steps.size() < count) continue;
    if (p == of_mean) answer.of_mean = plan;
    if (answer.fit++ == 0 || figure(plan) < figure(answer.best)) answer.best = std::move(plan);
  }
  if (answer.fit == 0)
    throw RuntimeFault(
        "no plan fits the memory of the devices with every batch; allow recomputation "
        "(plan.recompute), or pack fewer tokens into a microbatch");
  if (!question.out.empty())
    save(planner.planned(answer.best.from ? planner.request_of_batch(*answer.best.from)
                                          : planner.request_of_mean()),
         question.out);
  return answer;
}

std::string batches_text(const BatchesAnswer& answer) {
  std::vector<GridRow> rows;
  const double best = milliseconds(answer.best.mean());
  const auto add = [&](const std::string& name, const BatchSteps& plan) {
    rows.push_back({{{name},
                     {fixed(milliseconds(plan.mean()), 3)},
                     {fixed(milliseconds(plan.p95()), 3)},
                     {fixed(milliseconds(std::ranges::max(plan.steps)), 3)},
                     {fixed(100 * milliseconds(plan.mean()) / best, 2) + " %"},
                     {plan.plan}}});
  };
  if (answer.of_mean) add("plan for the mean microbatch", *answer.of_mean);
  add("best plan over all batches", answer.best);
  add("each batch planned anew", answer.replanned);
  const double worth = 1 - milliseconds(answer.replanned.mean()) / best;
  return grid_text(
             {{"", false}, {"mean ms"}, {"p95 ms"}, {"longest ms"}, {"of best"}, {"plan", false}},
             rows, false) +
         "\nsteps of " + std::to_string(answer.best.steps.size()) + " batches, estimated; " +
         std::to_string(answer.plans) + " plans, of which " + std::to_string(answer.fit) +
         " fit with every batch; the best was found for " +
         (answer.best.from ? "batch " + std::to_string(*answer.best.from) : "the mean microbatch") +
         "\nplanning each batch anew is worth " + fixed(100 * worth, 2) + " % of the mean step\n";
}

}  // namespace pfeife
