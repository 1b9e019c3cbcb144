#include <algorithm>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/basics/round_down.h"
#include "plots/screen/details_and_hints.h"
#include "plots/screen/links.h"

namespace pfeife {
namespace {

/// A bound that knows of links says more than the one that does not.
bool worth_saying(Nanoseconds with_links, Nanoseconds without) {
  constexpr double kMore = 1.001;
  return static_cast<double>(with_links.count()) > kMore * static_cast<double>(without.count());
}

/// How far the plan is from its bound, and what that covers.
std::string bound_sentence(const CaseRecord& record) {
  const ResultRow& row = record.plans.front().row;
  if (!row.lower_bound || !row.gap) return "";
  std::string text =
      "bound " + milliseconds_text(bound_in_tables(*row.lower_bound, row.estimate)) + " ms (gap ";
  if (row.simulate_gap) text += gap_text(*row.simulate_gap) + " % simulated, ";
  text += gap_text(*row.gap) + " % estimated";
  if (*row.gap == 0 && !record.orders_left_out) text += ": optimal";
  text += ") of " + (row.bound_class.empty() ? "" : row.bound_class + ": ") + record.bound_covers;
  if (record.links_bound && worth_saying(*record.links_bound, *row.lower_bound))
    text += "; none of them is simulated below " +
            milliseconds_text(bound_in_tables(*record.links_bound, row.simulate)) +
            " ms, because links are shared (no certificate says this)";
  return text;
}

/// Why each other family is not the plan, those with the same reason together: of its schedules
/// the one that came closest. A reason that compares with another plan than the chosen one, by an
/// engine that did not choose it, is none.
std::string families_sentence(const CaseRecord& record) {
  constexpr std::size_t kMostShown = 4;  // reasons
  const bool planned = record.plans.front().row.estimate.has_value();
  std::vector<std::string> seen;
  if (planned) seen.push_back(record.plans.front().row.family);
  struct Group {
    Reason reason;
    std::string reason_text, families;
    bool several = false;
  };
  std::vector<Group> groups;
  for (const LostSchedule& lost : record.lost) {
    if (lost.reason.beside_least || std::ranges::find(seen, lost.family) != seen.end()) continue;
    seen.push_back(lost.family);
    const std::string reason_text = to_string(lost.reason);
    const auto same = std::ranges::find(groups, reason_text, &Group::reason_text);
    if (same == groups.end())
      groups.push_back({lost.reason, reason_text, lost.family});
    else
      same->families += ", " + lost.family, same->several = true;
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostShown); ++i) {
    const Group& group = groups[i];
    text += (i > 0 ? "; " : "") + group.families + ": " +
            to_string(group.reason, std::nullopt, group.several);
  }
  if (groups.size() > kMostShown) text += "; others are in report.html";
  return text.empty() ? "" : (planned ? "other families: " : "families: ") + text;
}

/// Plans that need less memory than the one shown: of a front that may be long, each with a
/// twentieth less than the one before. Where the time is the same in the digits shown the last is.
/// Only their estimates are known, which say nothing beside a plan that was chosen in spite of its
/// own.
std::string front_sentence(const CaseRecord& record, const MemoryUnit& unit) {
  constexpr std::size_t kMostShown = 3;
  struct Shown {
    std::string memory, more;
  };
  const ResultRow& plan = record.plans.front().row;
  if (!plan.estimate || !plan.peak_memory) return "";
  const auto used = std::ranges::find(record.choices, true, &PlanChoice::used);
  if (used != record.choices.end() && used->number != 0) return "";
  std::vector<Shown> points;
  Bytes last = *plan.peak_memory;
  for (const FrontPoint& point : record.front) {
    if (20 * point.peak_memory.value > 19 * last.value || point.estimate < *plan.estimate) continue;
    const double more =
        static_cast<double>(point.estimate.count()) / static_cast<double>(plan.estimate->count()) -
        1;
    last = point.peak_memory;
    const Shown shown{unit.text(last), "+" + fixed(100 * more, 1)};
    if (!points.empty() && points.back().more == shown.more) points.pop_back();
    points.push_back(shown);
  }
  std::string text;
  for (std::size_t i = 0; i < points.size() && i < kMostShown; ++i)
    text +=
        (i > 0 ? ", " : "") + points[i].memory + " " + unit.name + " at " + points[i].more + " %";
  if (text.empty()) return "";
  return "less memory, times estimated: " + text + (points.size() > kMostShown ? ", ..." : "");
}

/// What the case leaves open and how it was settled: the choice and the next best.
std::vector<std::string> alternatives_sentences(const CaseRecord& record) {
  constexpr std::size_t kMostShown = 4;
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < std::min(record.alternatives.size(), kMostShown); ++i) {
    const Alternative& alternative = record.alternatives[i];
    const bool chosen = alternative.reason.why == Why::Chosen;
    const std::string what = !chosen ? to_string(alternative.reason, alternative.bound)
                             : !alternative.estimate
                                 ? "closest to fitting"
                                 : milliseconds_text(alternative.estimate) + " ms estimated";
    sentences.push_back((chosen ? "chosen: " : "not: ") + alternative.choice + ": " + what);
  }
  if (record.alternatives.size() > kMostShown)
    sentences.push_back("and " + std::to_string(record.alternatives.size() - kMostShown) +
                        " more, in report.html");
  return sentences;
}

/// "zb_greedy, V=3: 35.6 33.9 34.9 36.7": every rank.
std::string memory_sentence(const PlanRecord& plan, const MemoryUnit& unit) {
  std::string text = (plan.row.family.empty() ? plan.row.plan : schedule_name(plan.row)) + ":";
  if (!plan.row.estimate) return text + " " + plan.reason;
  for (std::size_t r = 0; r < plan.need.held().size(); ++r) {
    text += " " + unit.text(plan.need.held()[r]);
    if (const Bytes excess = plan.need.excess(r); excess > Bytes{0})
      text += "(+" + unit.lack_text(excess) + ")";
  }
  return text;
}

}  // namespace

std::string details_text(const CaseRecord& record, const MemoryUnit& unit, std::size_t width) {
  std::string text = wrapped(heading(record), width);
  if (record.plans.empty()) return text;
  std::vector<std::string> sentences{bound_sentence(record), families_sentence(record)};
  std::ranges::copy(other_choices(record), std::back_inserter(sentences));
  sentences.push_back(front_sentence(record, unit));
  std::ranges::copy(alternatives_sentences(record), std::back_inserter(sentences));
  if (!record.handed_from.empty()) sentences.push_back("the plan is that of " + record.handed_from);
  if (record.cut_places) sentences.push_back(to_string(*record.cut_places));
  if (record.links)
    std::ranges::copy(links_sentences(*record.links), std::back_inserter(sentences));
  if (record.slow)
    std::ranges::copy(pfeife::sentences(*record.slow), std::back_inserter(sentences));
  for (const TriedChange& tried : record.tried)
    sentences.push_back((tried.estimate ? "would help: " : "tried: ") + tried.change + ": " +
                        outcome_text(tried));
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) text += wrapped(sentence, width, "  ", "      ");
  const bool reserved = !record.plans.front().need.reserved.empty();
  text += std::string("  estimated peak memory of each device, ") +
          (reserved ? "as PyTorch's allocator reserves it (modelled), " : "") + unit.name + "\n";
  for (const PlanRecord& plan : record.plans)
    text += wrapped(memory_sentence(plan, unit), width, "    ", "        ");
  return text;
}

}  // namespace pfeife
