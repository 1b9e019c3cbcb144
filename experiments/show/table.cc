#include "experiments/show/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/show/table_columns.h"
#include "planner/cost/uncosted.h"
#include "planner/ir/round_down.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostExplained = 8;  ///< cases with a line about every family

/// One figure a rank; "!" marks what the device does not have, `marked`: there is one. Many ranks:
/// the range.
std::string peaks(const PlanRecord& plan, const MemoryUnit& unit, bool& marked) {
  constexpr std::size_t kMostShown = 8;
  const auto shown = [&](std::size_t rank) {
    const bool over =
        rank < plan.memory_limit.size() && plan.peak_memory[rank] > plan.memory_limit[rank];
    marked = marked || over;
    return unit.text(plan.peak_memory[rank]) + (over ? "!" : "");
  };
  if (plan.peak_memory.empty()) return "-";
  if (plan.peak_memory.size() > kMostShown) {
    const auto [least, most] =
        std::minmax_element(plan.peak_memory.begin(), plan.peak_memory.end());
    const auto index = [&](auto at) {
      return static_cast<std::size_t>(at - plan.peak_memory.begin());
    };
    return fmt::format("{} to {} (rank {})", shown(index(least)), shown(index(most)), index(most));
  }
  std::string text;
  for (std::size_t rank = 0; rank < plan.peak_memory.size(); ++rank)
    text += fmt::format("{}{:>5}", rank > 0 ? " " : "", shown(rank));
  return text;
}

/// Words in lines of at most `kWidth` characters where they allow it, the first after `line`, the
/// others indented by 8.
std::string wrapped(const std::string& words, std::string line = "   ") {
  constexpr std::size_t kWidth = 110;
  std::string text;
  bool any = false;  // word in the line
  for (std::size_t begin = 0, end; begin < words.size(); begin = end + 1, any = true) {
    end = std::min(words.find(' ', begin), words.size());
    if (line.size() + 1 + end - begin > kWidth && any) {
      text += line + "\n";
      line = "       ";
    }
    line += " " + words.substr(begin, end - begin);
  }
  return text + line + "\n";
}

/// How far the plan is from its bound, and what that covers; `above`: the class said last.
std::string bound_line(const CaseRecord& record, std::string& above) {
  const ResultRow& row = record.plans.front().row;
  if (!row.lower_bound || !row.gap) return "";
  std::string text = fmt::format(
      "bound {} ms (gap ", milliseconds_text(bound_in_tables(*row.lower_bound, row.estimate)));
  if (row.simulate_gap) text += gap_text(*row.simulate_gap) + " % simulated, ";
  text += gap_text(*row.gap) + " % estimated";
  if (*row.gap == 0 && !record.orders_left_out) text += ": optimal";
  text += record.bound_covers == above ? ") of the same class" : ") of " + record.bound_covers;
  above = record.bound_covers;
  return wrapped(text);
}

/// Why each other family is not the plan, those with the same reason together: of its schedules
/// the one that came closest.
std::string families_line(const CaseRecord& record) {
  constexpr std::size_t kMostShown = 4;  // reasons
  const bool planned = record.plans.front().row.estimate.has_value();
  std::vector<std::string> seen;
  if (planned) seen.push_back(record.plans.front().row.family);
  struct Group {
    Reason reason;
    std::string said, families;
    bool several = false;
  };
  std::vector<Group> groups;
  for (const LostSchedule& lost : record.lost) {
    if (std::ranges::find(seen, lost.family) != seen.end()) continue;
    seen.push_back(lost.family);
    const std::string said = to_string(lost.reason);
    const auto same = std::ranges::find(groups, said, &Group::said);
    if (same == groups.end())
      groups.push_back({lost.reason, said, lost.family});
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
  return text.empty() ? "" : wrapped((planned ? "other families: " : "families: ") + text);
}

/// In a unit of its own: devices have gigabytes where a small model needs kilobytes.
std::string limits(const std::vector<Bytes>& limit) {
  if (limit.empty()) return "";
  const auto [least, most] = std::minmax_element(limit.begin(), limit.end());
  const MemoryUnit unit = memory_unit(*least);
  return (*least == *most ? "  (limit " : "  (limits " + unit.text(*least) + " to ") +
         unit.text(*most) + " " + unit.name + ")";
}

/// A case's lines before they are padded: the plan's name, the figures, the memory.
struct Line {
  std::string name;
  std::vector<std::string> figures;  // empty: `memory` is a sentence across the rest of the line
  std::string memory;
  bool over = false;  // some of it is marked as more than the device has
};

/// `planned`: of the case's own plan, which is named with its schedule.
Line line_of(const PlanRecord& plan, bool planned, const std::vector<FigureColumn>& columns,
             const MemoryUnit& unit) {
  Line line{
      planned && !plan.row.family.empty() ? "planned: " + schedule_name(plan.row) : plan.row.plan,
      {},
      ""};
  if (!plan.row.estimate) {
    line.memory = plan.reason;
    return line;
  }
  if (!planned) line.name = schedule_name(plan.row);
  for (const FigureColumn& column : columns) line.figures.push_back(column.text(plan));
  line.memory = peaks(plan, unit, line.over);
  return line;
}

/// What all lines have in common.
struct TableLayout {
  std::vector<FigureColumn> columns;
  std::vector<std::size_t> widths;  // [column]
  std::size_t name_width = 4;
  MemoryUnit unit;
};

TableLayout layout_of(const std::vector<CaseRecord>& cases) {
  TableLayout layout{figure_columns(cases), {}, 4, memory_unit(cases)};
  for (const FigureColumn& column : layout.columns)
    layout.widths.push_back(std::max(column.top.size(), column.bottom.size()));
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      const Line line = line_of(plan, &plan == &record.plans.front(), layout.columns, layout.unit);
      if (line.figures.empty()) continue;
      layout.name_width = std::max(layout.name_width, line.name.size());
      for (std::size_t c = 0; c < line.figures.size(); ++c)
        layout.widths[c] = std::max(layout.widths[c], line.figures[c].size());
    }
  return layout;
}

std::string text_of(const Line& line, const TableLayout& layout) {
  std::string text = fmt::format("  {:<{}}", line.name, layout.name_width);
  if (line.figures.empty()) return wrapped(line.memory, text + " ");
  for (std::size_t c = 0; c < line.figures.size(); ++c)
    text += fmt::format("  {:>{}}", line.figures[c], layout.widths[c]);
  return text + "  " + line.memory + "\n";
}

std::string header(const TableLayout& layout) {
  std::string top = fmt::format("{:<{}}", "", layout.name_width + 2);
  std::string bottom = fmt::format("{:<{}}", "plan", layout.name_width + 2);
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    top += fmt::format("  {:>{}}", layout.columns[c].top, layout.widths[c]);
    bottom += fmt::format("  {:>{}}", layout.columns[c].bottom, layout.widths[c]);
  }
  return top + "  estimated peak memory\n" + bottom + "  of each device, " + layout.unit.name +
         "\n";
}

/// Plans that need less memory than the one shown, in a line: of a front that may be long, each
/// with a twentieth less than the one before. Where the time is the same in the digits shown the
/// last is.
std::string front_text(const CaseRecord& record, const MemoryUnit& unit) {
  constexpr std::size_t kMostShown = 3;
  struct Shown {
    std::string memory, more;
  };
  const ResultRow& plan = record.plans.front().row;
  if (!plan.estimate || !plan.peak_memory) return "";
  std::vector<Shown> points;
  Bytes last = *plan.peak_memory;
  for (const FrontPoint& point : record.front) {
    if (20 * point.peak_memory.value > 19 * last.value) continue;
    const double more =
        static_cast<double>(point.estimate.count()) / static_cast<double>(plan.estimate->count()) -
        1;
    last = point.peak_memory;
    const Shown shown{unit.text(last), fmt::format("{:+.1f}", 100 * more)};
    if (!points.empty() && points.back().more == shown.more) points.pop_back();
    points.push_back(shown);
  }
  std::string text;
  for (std::size_t i = 0; i < points.size() && i < kMostShown; ++i)
    text += fmt::format("{}{} {} at {} %", i > 0 ? ", " : "", points[i].memory, unit.name,
                        points[i].more);
  if (text.empty()) return "";
  return "    less memory: " + text + (points.size() > kMostShown ? ", ...\n" : "\n");
}

/// Where another way of choosing picks another of the search's plans: what it is and what it costs.
std::string choices_text(const CaseRecord& record) {
  const auto used = std::ranges::find(record.choices, true, &PlanChoice::used);
  if (used == record.choices.end()) return "";
  std::map<std::size_t, std::string> lines;  // by plan
  for (const PlanChoice& choice : record.choices)
    if (choice.number != used->number) {
      std::string& line = lines[choice.number];
      line += (line.empty() ? "    select_by " : " or ") + choice.by;
    }
  std::string text;
  for (const auto& [number, line] : lines) {
    const PlanChoice& choice = *std::ranges::find(record.choices, number, &PlanChoice::number);
    text += fmt::format("{} picks {}, {} ms estimated", line, choice.schedule,
                        milliseconds_text(choice.estimate));
    if (choice.simulate) text += ", " + milliseconds_text(choice.simulate) + " ms simulated";
    if (choice.p95) text += ", p95 " + milliseconds_text(choice.p95) + " ms";
    text += "\n";
  }
  return text;
}

/// What the case leaves open and how it was settled: the choice and the next best.
std::string alternatives_text(const CaseRecord& record) {
  constexpr std::size_t kMostShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(record.alternatives.size(), kMostShown); ++i) {
    const Alternative& one = record.alternatives[i];
    const bool chosen = one.reason.why == Why::Chosen;
    const std::string what = !chosen         ? to_string(one.reason, one.bound)
                             : !one.estimate ? "closest to fitting"
                                             : milliseconds_text(one.estimate) + " ms estimated";
    text += fmt::format("    {} {}: {}\n", chosen ? "chosen:" : "not:   ", one.choice, what);
  }
  if (record.alternatives.size() > kMostShown)
    text +=
        fmt::format("    and {} more, in report.html\n", record.alternatives.size() - kMostShown);
  return text;
}

/// If nothing fits: what was tried, a line a change.
std::string changes_text(const CaseRecord& record) {
  std::string text;
  for (const TriedChange& tried : record.tried)
    text += wrapped(tried.change + ": " + outcome_text(tried),
                    tried.estimate ? "    would help:" : "    tried:     ");
  return text;
}

/// What has no cost in the models of the cases, each line once.
std::vector<std::string> uncosted_notes(const std::vector<CaseRecord>& cases) {
  std::vector<std::string> lines;
  for (const CaseRecord& record : cases)
    for (const std::string& note : record.notes)
      if (note.starts_with(kUncostedNote) && std::ranges::find(lines, note) == lines.end())
        lines.push_back(note);
  return lines;
}

}  // namespace

std::string milliseconds_text(const std::optional<Nanoseconds>& time) {
  if (!time) return "-";
  return fmt::format("{:.{}f}", milliseconds(*time), table_decimals(*time));
}

std::string heading(const CaseRecord& record) {
  std::string text = record.name;
  for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 2)
    text.replace(at, 1, ", ");
  for (std::size_t at = 0; (at = text.find('=', at)) != std::string::npos; at += 1)
    text.replace(at, 1, " ");
  return text;
}

std::string results_table(const std::vector<CaseRecord>& cases) {
  const TableLayout layout = layout_of(cases);
  std::string text = header(layout);
  // Of many cases the page says it.
  const bool few = cases.size() <= kMostExplained;
  std::string above;
  bool over = false, recomputed = false;
  for (const CaseRecord& record : cases) {
    text += "\n" + heading(record) +
            (record.plans.empty() ? "" : limits(record.plans.front().memory_limit)) + "\n";
    for (const PlanRecord& plan : record.plans) {
      const bool planned = &plan == &record.plans.front();
      const Line line = line_of(plan, planned, layout.columns, layout.unit);
      text += text_of(line, layout);
      recomputed = recomputed || (record.plans.size() > 1 && plan.recomputes);
      over = over || line.over;
      if (planned)
        text += bound_line(record, above) + (few ? families_line(record) : "") +
                choices_text(record) + front_text(record, layout.unit) + alternatives_text(record) +
                changes_text(record);
    }
  }
  for (const std::string& note : uncosted_notes(cases)) text += "\n" + note + "\n";
  if (recomputed) text += "\nonly what says recompute= recomputes anything, no baseline does\n";
  return over ? text + "\n! more than the device has\n" : text;
}

}  // namespace pfeife
