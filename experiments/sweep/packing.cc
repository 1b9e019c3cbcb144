#include "experiments/sweep/packing.h"

#include <algorithm>

#include "experiments/plans/evaluated_case.h"
#include "experiments/sweep/single_case.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"
#include "planner/schedules/families.h"
#include "planner/search/orders/document_grouping.h"
#include "planner/search/orders/grouped_times.h"
#include "planner/search/orders/microbatch_permutation.h"

namespace pfeife {
namespace {

Documents documents_of(const SingleCase& single, std::int64_t limit) {
  Documents documents;
  for (const Documents& microbatch : single.config.training.lengths)
    documents.insert(documents.end(), microbatch.begin(), microbatch.end());
  if (documents.empty())
    throw ConfigError(single.config.place("training.lengths"),
                      "pack needs the documents of a step; list their lengths in any grouping, as "
                      "in training.lengths: [[512, 1024, 300]]");
  const std::int64_t longest = std::ranges::max(documents);
  if (longest > limit)
    throw ConfigError(single.config.place("training.lengths"),
                      "a document has " + std::to_string(longest) + " tokens, and --limit allows " +
                          std::to_string(limit) +
                          " a microbatch; raise --limit, or cut the document");
  return documents;
}

class Packer {
 public:
  Packer(const SingleCase& single, std::int64_t limit, std::size_t threads)
      : single_(single), limit_(limit), threads_(threads) {}

  /// Plans the grouping and records its step, unless `name` is empty.
  Planned planned(const std::string& name, const DocumentLengths& grouping, bool order) {
    Request request = single_.request();
    request.training.lengths = grouping;
    request.microbatches = grouping.size();
    request.plan.search_microbatch_order = order;
    Planned planned = single_.planned(request, threads_);
    if (!name.empty()) packing_.steps.push_back({name, grouping, planned.best().plan.estimate});
    return planned;
  }

  /// The grouping that is fastest on the plan's rows, with microbatches in the order in which they
  /// run. `starts`: in the order of the plan's numbers; the plan's own grouping is among them.
  GroupingSearch regrouped(const Planned& planned, std::vector<DocumentLengths> starts) {
    const Evaluation& best = planned.evaluated->planned[planned.evaluated->chosen];
    Choice choice = *best.choice;
    const Schedule rows = compute_only(choice);
    const MicrobatchOrder runs = forward_order(rows);
    MicrobatchOrder position(runs.size());
    for (std::uint32_t i = 0; i < runs.size(); ++i) position[runs[i]] = i;
    choice.order = relabelled(rows, position);
    for (DocumentLengths& start : starts) {
      const DocumentLengths given = start;
      for (std::size_t i = 0; i < runs.size(); ++i) start[i] = given[runs[i]];
    }
    GroupedTimes times(*planned.layers, *best.inputs.cluster, choice,
                       step_norm(planned.best().plan));
    GroupingSearch found =
        search_grouping(starts, limit_, [&](const DocumentLengths& g) { return times.time(g); });
    packing_.tried += found.tried, packing_.exact = found.exact;
    return found;
  }

  /// The step of the grouping that is recorded under the name.
  Nanoseconds step_of(const std::string& name) const {
    return std::ranges::find(packing_.steps, name, &PackedStep::name)->step;
  }
  Packing take() { return std::move(packing_); }

 private:
  const SingleCase& single_;
  std::int64_t limit_;
  std::size_t threads_;
  Packing packing_;
};

/// Groupings of so many microbatches to start from.
std::vector<DocumentLengths> starts_of(const Documents& documents, std::int64_t limit,
                                       std::size_t microbatches) {
  std::vector<DocumentLengths> starts;
  const auto add = [&](std::optional<DocumentLengths> start) {
    if (start && start->size() == microbatches) starts.push_back(*std::move(start));
  };
  add(first_fit(documents, limit));
  Documents longest_first = documents;
  std::ranges::sort(longest_first, std::greater{});
  add(first_fit(longest_first, limit));
  for (const bool squares : {false, true})
    add(balanced_grouping(documents, limit, microbatches, squares));
  return starts;
}

std::int64_t most_tokens(const DocumentLengths& grouping) {
  std::int64_t most = 0;
  for (const Documents& microbatch : grouping) {
    std::int64_t tokens = 0;
    for (const std::int64_t length : microbatch) tokens += length;
    most = std::max(most, tokens);
  }
  return most;
}

}  // namespace

Packing pack_documents(const PackingQuestion& question, std::size_t threads) {
  constexpr std::size_t kRounds = 3;
  const SingleCase single = read_single_case(question.config, question.settings, "pack");
  const Documents documents = documents_of(single, question.limit);
  const DocumentLengths fitted = first_fit(documents, question.limit);
  const std::size_t microbatches = question.microbatches.value_or(fitted.size());
  const std::vector<DocumentLengths> starts = starts_of(documents, question.limit, microbatches);
  if (starts.empty())
    throw ConfigError({"--microbatches " + std::to_string(microbatches), 0, 0},
                      "no grouping of the " + std::to_string(documents.size()) +
                          " documents into so many microbatches of at most " +
                          std::to_string(question.limit) + " tokens was found; first-fit makes " +
                          std::to_string(fitted.size()) +
                          ": leave --microbatches out, or raise "
                          "--limit");
  Packer packer(single, question.limit, threads);
  const DocumentLengths& listed = single.config.training.lengths;
  if (listed != fitted && most_tokens(listed) <= question.limit)
    packer.planned("as listed", listed, false);
  packer.planned("first-fit", fitted, false);
  const bool from_fitted = starts.front() == fitted;
  Planned planned = packer.planned(
      from_fitted ? "first-fit, order searched" : "balanced, order searched", starts.front(), true);
  std::optional<PackedStep> best;
  if (from_fitted) best = {"planned", fitted, packer.step_of("first-fit")};
  std::vector<DocumentLengths> from = starts;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const GroupingSearch found = packer.regrouped(planned, from);
    planned = packer.planned("", found.grouping, false);
    const Nanoseconds step = planned.best().plan.estimate;
    if (best && step >= best->step) break;
    best = {"planned", found.grouping, step};
    from = {found.grouping};
  }
  Packing packing = packer.take();
  packing.steps.push_back(*std::move(best));
  return packing;
}

std::string packing_text(const Packing& packing) {
  const PackedStep& fitted = *std::ranges::find(packing.steps, "first-fit", &PackedStep::name);
  std::vector<GridRow> rows;
  for (const PackedStep& step : packing.steps)
    rows.push_back(
        {{{step.name},
          {std::to_string(step.grouping.size())},
          {std::to_string(most_tokens(step.grouping))},
          {fixed(milliseconds(step.step), 3)},
          {fixed(100 * milliseconds(step.step) / milliseconds(fitted.step), 1) + " %"}}});
  return grid_text({{"grouping", false},
                    {"microbatches"},
                    {"most tokens"},
                    {"step ms, estimated"},
                    {"of first-fit"}},
                   rows, false) +
         "\ngroupings tried on the rows of the plans: " + std::to_string(packing.tried) +
         (packing.exact ? ", all there are\n" : "; there are more\n");
}

std::string lengths_csv(const DocumentLengths& grouping) {
  std::string text = "microbatch,length\n";
  for (std::size_t m = 0; m < grouping.size(); ++m)
    for (const std::int64_t length : grouping[m])
      text += std::to_string(m) + "," + std::to_string(length) + "\n";
  return text;
}

}  // namespace pfeife
