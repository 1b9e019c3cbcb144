#include <algorithm>
#include <cmath>
#include <map>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/head_place.h"
#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"
#include "plots/screen/details_and_hints.h"

namespace pfeife {
namespace {

constexpr double kApart = 0.01;        ///< of estimate and simulation
constexpr double kWorthIt = 0.01;      ///< another choice gains as much by its own measure
constexpr std::size_t kMostCases = 2;  ///< cases of one kind

/// Sentences about one case.
struct Told {
  std::string who;
  std::vector<std::string> sentences;
};

std::vector<std::string> nothing_fits(const CaseRecord& record) {
  if (record.plans.empty() || record.plans.front().row.feasible) return {};
  const PlanRecord& plan = record.plans.front();
  std::vector<std::string> sentences{
      plan.row.estimate ? "the plan does not fit: " + shortage_text(plan.need) : plan.reason};
  for (const TriedChange& tried : record.tried)
    if (tried.estimate)
      sentences.push_back("would help: " + tried.change + ": " + outcome_text(tried));
  if (sentences.size() == 1 && !record.tried.empty())
    sentences.push_back("none of " + std::to_string(record.tried.size()) +
                        " changes that were tried would help");
  return sentences;
}

/// A baseline that fits is faster than the plan, which was not searched for among its schedules, or
/// not by this engine.
std::vector<std::string> baseline_is_faster(const CaseRecord& record) {
  const std::optional<std::size_t> best = best_plan(record);
  if (!best || *best == 0 || !record.plans.front().row.feasible) return {};
  const ResultRow& plan = record.plans.front().row;
  const PlanRecord& faster = record.plans[*best];
  const TraceSource engine = compared_engine(record);
  const auto time = time_of(faster.row, engine), own = time_of(plan, engine);
  const std::string& family = faster.row.family;
  const bool open =
      family == plan.family ||
      std::ranges::find(record.lost, family, &LostSchedule::family) != record.lost.end();
  return {"baseline " + plan_name(faster) + " fits and takes " +
          gap_text(1 - static_cast<double>(time->count()) / static_cast<double>(own->count())) +
          " % less time than the plan, " + milliseconds_text(time) + " ms " + to_string(engine) +
          (open || plan.candidates == 0
               ? ""
               : "; its family is not among those searched: add " + family + " to plan.families")};
}

std::vector<std::string> engines_apart(const CaseRecord& record) {
  if (record.plans.empty()) return {};
  const ResultRow& row = record.plans.front().row;
  if (!row.estimate || !row.simulate || row.simulate->count() == 0) return {};
  const double apart =
      static_cast<double>(row.estimate->count()) / static_cast<double>(row.simulate->count()) - 1;
  if (std::abs(apart) <= kApart) return {};
  return {"the plan's estimate, " + milliseconds_text(row.estimate) + " ms, is " +
          fixed(100 * std::abs(apart), 1) + " % " + (apart > 0 ? "above" : "below") +
          " its simulation"};
}

/// Where it is worth a fiftieth of the device's memory.
std::vector<std::string> less_reserved(const CaseRecord& record) {
  if (record.plans.empty()) return {};
  const PlanRecord& plan = record.plans.front();
  Bytes most{0}, limit{0};
  for (std::size_t r = 0; r < plan.reserved_expandable.size(); ++r)
    if (const Bytes less = plan.need.reserved[r] - plan.reserved_expandable[r]; less > most)
      most = less, limit = plan.need.limit[r];
  if (most == Bytes{0} || 50 * most.value < limit.value) return {};
  return {"expandable segments: " + to_string(most) +
          " less is reserved (modelled); set PYTORCH_ALLOC_CONF=expandable_segments:True, and "
          "plan.allocator to the same"};
}

/// The first cases of which `sentences_of` says something.
std::string first_sentences(const std::vector<CaseRecord>& cases, std::size_t width,
                            std::vector<std::string> (*sentences_of)(const CaseRecord&),
                            const std::string& others) {
  std::string text;
  std::size_t count = 0;
  for (const CaseRecord& record : cases) {
    const std::vector<std::string> sentences = sentences_of(record);
    if (sentences.empty() || ++count > kMostCases) continue;
    std::string first = cases.size() > 1 ? heading(record) + ": " : "";
    for (const std::string& sentence : sentences) {
      text +=
          wrapped(first + sentence, width, first.empty() && cases.size() > 1 ? "  " : "", "    ");
      first.clear();
    }
  }
  if (count > kMostCases)
    text += "and " + std::to_string(count - kMostCases) + " more cases " + others + "\n";
  return text;
}

std::vector<std::string> unfinished(const CaseRecord& record) {
  std::vector<std::string> sentences;
  for (const Unfinished& part : record.unfinished) sentences.push_back(to_string(part));
  return sentences;
}

/// Cuts inside blocks, which keep other frameworks from running the plan, or between them at a
/// price.
std::vector<std::string> cut_places(const CaseRecord& record) {
  const std::optional<CutPlaces>& places = record.cut_places;
  if (!places || (places->between_blocks && cost_of_blocks(*places) < kWorthIt / 10)) return {};
  return {to_string(*places)};
}

/// Where the output layer is, and what the step is with it elsewhere.
std::vector<std::string> head_place(const CaseRecord& record) {
  if (record.alternatives.size() != 2) return {};
  const Alternative &taken = record.alternatives.front(), &left = record.alternatives.back();
  if ((taken.choice != kHeadOnLastRank && taken.choice != kHeadOnAllRanks) || !taken.estimate)
    return {};
  const std::string text =
      taken.choice + ": " + milliseconds_text(taken.estimate) + " ms estimated; " + left.choice;
  return {left.estimate ? text + ": " + milliseconds_text(left.estimate) + " ms"
                        : text + ": not possible, " + to_string(left.reason, left.bound)};
}

std::string uncosted_lines(const std::vector<CaseRecord>& cases, std::size_t width) {
  std::vector<std::string> shown;
  std::string text;
  for (const CaseRecord& record : cases)
    for (const std::string& line : record.uncosted) {
      if (std::ranges::find(shown, line) != shown.end()) continue;
      shown.push_back(line);
      text += wrapped("no cost: " + line, width, "", "    ");
    }
  return text;
}

/// What one way of choosing looks at.
std::optional<Nanoseconds> looked_at(SelectBy by, const PlanChoice& choice) {
  if (by == SelectBy::Estimate) return choice.estimate;
  return by == SelectBy::P95 ? choice.p95 : choice.simulate;
}

/// What other_choices() says of those that pick a plan notably better by the figure they look at.
std::vector<std::string> choices_that_matter(const CaseRecord& record) {
  const auto used = std::ranges::find(record.choices, true, &PlanChoice::used);
  if (used == record.choices.end()) return {};
  CaseRecord kept;
  for (const PlanChoice& choice : record.choices) {
    const auto own = looked_at(choice.by, choice), instead = looked_at(choice.by, *used);
    const bool small = own && instead &&
                       static_cast<double>((*instead - *own).count()) <
                           kWorthIt * static_cast<double>(own->count());
    if (choice.used || !small) kept.choices.push_back(choice);
  }
  return other_choices(kept);
}

}  // namespace

std::vector<std::string> other_choices(const CaseRecord& record) {
  const auto used = std::ranges::find(record.choices, true, &PlanChoice::used);
  if (used == record.choices.end()) return {};
  std::map<std::size_t, std::string> lines;  // by plan
  for (const PlanChoice& choice : record.choices)
    if (choice.number != used->number) {
      std::string& line = lines[choice.number];
      line += (line.empty() ? "select_by " : " or ") + to_string(choice.by);
    }
  std::vector<std::string> sentences;
  for (const auto& [number, line] : lines) {
    const PlanChoice& choice = *std::ranges::find(record.choices, number, &PlanChoice::number);
    std::string text = line + " picks " + choice.schedule + ", " +
                       milliseconds_text(choice.estimate) + " ms estimated";
    if (choice.simulate) text += ", " + milliseconds_text(choice.simulate) + " ms simulated";
    if (choice.p95) text += ", p95 " + milliseconds_text(choice.p95) + " ms";
    sentences.push_back(text);
  }
  return sentences;
}

std::string action_text(const std::vector<CaseRecord>& cases, std::size_t width) {
  return first_sentences(cases, width, nothing_fits, "that nothing fits") +
         first_sentences(cases, width, baseline_is_faster,
                         "in which a baseline that fits is faster") +
         first_sentences(cases, width, choices_that_matter,
                         "in which select_by picks another plan") +
         first_sentences(cases, width, less_reserved, "where expandable segments reserve less") +
         first_sentences(cases, width, unfinished, "that are unfinished") +
         first_sentences(cases, width, cut_places, "with cuts of other places") +
         first_sentences(cases, width, head_place, "whose output layer may be elsewhere") +
         first_sentences(cases, width, engines_apart,
                         "with estimate and simulation more than 1 % apart") +
         uncosted_lines(cases, width);
}

}  // namespace pfeife
