#include "plots/screen/table.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "planner/ir/basics/grid.h"
#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"
#include "plots/screen/details_and_hints.h"

namespace pfeife {
namespace {

constexpr double kFarFromBound = 0.05;
constexpr std::size_t kWide = 120;      ///< from here on each device's memory is shown
constexpr std::size_t kLeastName = 20;  ///< characters for a plan's name, or a column gives way

constexpr std::string_view kPlannedMark = " *", kMovingMark = " ~", kLessMemoryMark = " -";

/// Behind the name of a plan.
std::string_view mark_of(const CaseRecord& record, const PlanRecord& plan,
                         const ScreenOptions& options) {
  if (plan.row.plan == kLessMemory) return kLessMemoryMark;
  if (&plan != &record.plans.front()) return "";
  const auto& moving = options.still_moving;
  if (std::ranges::find(moving, record.name) != moving.end()) return kMovingMark;
  return options.chosen_only ? "" : kPlannedMark;
}

/// "zb_greedy V=3 *", with knobs as far as there is room.
std::string marked_name(const CaseRecord& record, const PlanRecord& plan,
                        const ScreenOptions& options) {
  return plan_name(plan) + std::string(mark_of(record, plan, options));
}

/// What marked_name() gave, in so many characters; the mark is kept.
std::string fitting_name(std::string name, std::string_view mark, std::size_t most) {
  if (name.size() <= most || mark.empty()) return clipped(name, most);
  name.resize(name.size() - mark.size());
  return clipped(name, std::max<std::size_t>(most, 4) - mark.size()) + std::string(mark);
}

/// What stands in the place of a name that has too little room: a shorter one, and a line below.
struct ShortName {
  std::string_view mark;
  std::string name, knobs;
};

struct Table {
  std::vector<GridColumn> columns;
  std::vector<GridRow> rows;
  std::size_t name = 0;                         ///< which column has the plans' names
  std::map<std::size_t, ShortName> names = {};  ///< [row] of a plan
};

/// The columns of `keys` stand in front; the others are headings.
Table table_of(const std::vector<CaseRecord>& cases, const std::vector<Key>& keys,
               const std::vector<Key>& headings, const std::vector<Column>& columns,
               const TableFacts& facts, const ScreenOptions& options) {
  Table table;
  for (const Key& key : keys) table.columns.push_back({key.head, key.number});
  table.name = table.columns.size();
  table.columns.push_back({"plan", false});
  for (const Column& column : columns)
    table.columns.push_back({column.head, column.name != "devices"});
  // Room for a reason, where no plan has figures.
  if (columns.empty()) table.columns.insert(table.columns.end(), 2, {"", false});
  std::string above;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    std::string heading;
    for (const Key& key : headings)
      heading += (heading.empty() ? "" : ", ") + key.head + " " + key.values[c];
    if (heading != above) table.rows.push_back({{{heading}}});
    above = heading;
    bool first = true;
    for (const PlanRecord* plan : plans_in_order(cases[c], options.chosen_only)) {
      const bool chosen = !options.chosen_only && plan == &cases[c].plans.front();
      GridRow row;
      row.look = !plan->need.fits() || !has_time(plan->row) ? Look::DoesNotFit
                 : chosen && plan->row.feasible             ? Look::Chosen
                                                            : Look::Plain;
      for (const Key& key : keys) row.cells.push_back({first ? key.values[c] : ""});
      first = false;
      row.cells.push_back({marked_name(cases[c], *plan, options)});
      table.names[table.rows.size()] = {mark_of(cases[c], *plan, options), short_plan_name(*plan),
                                        has_time(plan->row) ? plan->row.knobs : ""};
      if (!has_time(plan->row)) {
        row.cells.push_back({plan->reason});
      } else {
        for (const Column& column : columns) {
          const bool far =
              column.name == "gap" && gap_of(cases[c], *plan).value_or(0) > kFarFromBound;
          row.cells.push_back(
              {column.text(facts, cases[c], *plan), far ? Look::FarFromBound : Look::Plain});
        }
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::size_t width_of(const Table& table) { return grid_width(table.columns, table.rows); }

/// Gives the names of the plans the room that the other columns leave, and cuts reasons to it. A
/// name that is too long loses its knobs, which stand below. True if there is one.
bool fit(Table& table, std::size_t width) {
  const std::size_t whole = width_of(table);
  std::size_t longest = table.columns[table.name].head.size(), shortest = 0;
  for (const GridRow& row : table.rows)
    if (row.cells.size() > table.name)
      longest = std::max(longest, row.cells[table.name].text.size());
  for (const auto& [row, is] : table.names)
    shortest = std::max(shortest, is.name.size() + is.mark.size());
  const std::size_t others = whole > longest ? whole - longest : 0;
  const std::size_t least = std::min(shortest, kLeastName);
  const std::size_t most = width > others + least ? width - others : least;
  std::vector<GridRow> rows;
  bool shortened = false;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    GridRow& row = table.rows[r];
    std::string knobs;
    if (row.cells.size() > table.name) {
      const ShortName& is = table.names.at(r);
      std::string& name = row.cells[table.name].text;
      if (name.size() > most && !is.knobs.empty()) {
        name = is.name + std::string(is.mark);
        knobs = is.knobs;
      }
      name = fitting_name(name, is.mark, most);
    }
    if (row.cells.size() == 1) row.cells[0].text = clipped(row.cells[0].text, width - 1);
    rows.push_back(std::move(row));
    if (knobs.empty()) continue;
    shortened = true;
    GridRow below{std::vector<GridCell>(table.name)};
    below.cells.push_back({"  " + knobs});
    rows.push_back(std::move(below));
  }
  table.rows = std::move(rows);
  for (GridRow& row : table.rows) {
    if (row.cells.size() != table.name + 2) continue;
    // A reason stands behind the name, up to the end of the line.
    Table upto{{table.columns.begin(),
                table.columns.begin() + static_cast<std::ptrdiff_t>(table.name + 1)},
               {}};
    for (const GridRow& upper : table.rows)
      if (upper.cells.size() > table.name + 1)  // not what stands below a name
        upto.rows.push_back({{upper.cells.begin(),
                              upper.cells.begin() + static_cast<std::ptrdiff_t>(table.name + 1)}});
    const std::size_t used = width_of(upto) + 2;
    row.cells.back().text = clipped(row.cells.back().text, width > used ? width - used : 0);
  }
  return shortened;
}

/// Columns that give way where the names would have too little room, the first first.
void drop_until_it_fits(std::vector<Column>& columns, std::size_t keys,
                        const std::vector<CaseRecord>& cases, const TableFacts& facts,
                        const ScreenOptions& options) {
  std::size_t longest = 4;
  for (const CaseRecord& record : cases)
    for (const PlanRecord* plan : plans_in_order(record, options.chosen_only))
      longest =
          std::max(longest, short_plan_name(*plan).size() + mark_of(record, *plan, options).size());
  const auto width_of_all = [&] {
    std::size_t used = keys + std::min(longest, kLeastName);
    for (const Column& column : columns) {
      std::vector<GridRow> rows;
      for (const CaseRecord& record : cases)
        for (const PlanRecord* plan : plans_in_order(record, options.chosen_only))
          rows.push_back({{{column.text(facts, record, *plan)}}});
      used += grid_width({{column.head, column.name != "devices"}}, rows) + 2;
    }
    return used;
  };
  for (Column& column : columns)
    if (column.name == "devices" && width_of_all() > options.width)
      column.text = each_device_briefly;
  const auto has = [&](const char* name) {
    return std::ranges::find(columns, name, &Column::name) != columns.end();
  };
  const auto stays = [&](std::string_view name) {  // latency and rate are read together
    return (name == "peak" && !has("reserved")) || (name == "samples" && has("latency"));
  };
  for (const char* name : {"devices", "p95", "peak", "bubble", "samples", "vs", "error", "measure"})
    if (width_of_all() > options.width && !stays(name))
      std::erase_if(columns, [&](const Column& column) { return column.name == name; });
}

std::string limits_text(const std::vector<CaseRecord>& cases) {
  std::optional<Bytes> least, most;
  bool reserved = false;
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) reserved = reserved || !plan.need.reserved.empty();
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans)
      for (const Bytes limit : plan.need.limit) {
        least = std::min(least.value_or(limit), limit);
        most = std::max(most.value_or(limit), limit);
      }
  if (!least) return "";
  const MemoryUnit unit = memory_unit(*least);  // devices may have gigabytes, a model kilobytes
  return std::string("; peak memory estimated, ") + (reserved ? "reserved modelled, " : "") +
         "limit " + (*least == *most ? "" : unit.text(*least) + " to ") + unit.text(*most) + " " +
         unit.name;
}

/// What the letters and marks mean, those that are there.
std::string legend(const std::vector<CaseRecord>& cases, const std::vector<Key>& keys,
                   const std::vector<Column>& columns, const TableFacts& facts,
                   const ScreenOptions& options, bool shortened) {
  bool lacks = false, gaps = false, recomputes = false, others_do = false, several = false;
  bool planned = false, moving = false, less_memory = false;
  for (const CaseRecord& record : cases)
    for (const PlanRecord* plan : plans_in_order(record, options.chosen_only)) {
      planned = planned || mark_of(record, *plan, options) == kPlannedMark;
      moving = moving || mark_of(record, *plan, options) == kMovingMark;
      several = several || plan != &record.plans.front();
      less_memory = less_memory || plan->row.plan == kLessMemory;
      lacks = lacks || !plan->need.fits();
      recomputes = recomputes || plan->recomputes;
      others_do = others_do || (plan->recomputes && plan != &record.plans.front());
      gaps = gaps || gap_of(record, *plan);
    }
  const auto has = [&](const char* name) {
    return std::ranges::find(columns, name, &Column::name) != columns.end();
  };
  std::string text = "D devices, N microbatches";
  if (std::ranges::find(keys, kMicrobatchSize, &Key::head) != keys.end())
    text += ", b samples a microbatch";
  if (planned) text += ", * planned";
  if (moving) text += ", ~ planned so far";
  if (less_memory) text += ", - nearly as fast with less memory";
  if (lacks) text += std::string(", ! ") + facts.memory.name + " over the limit";
  if (has("error")) text += ", error: of the prediction, predicted / measured - 1";
  if (gaps && has("gap")) text += ", " + gap_words(cases);
  text = wrapped(text, options.width);
  if (recomputes && several)
    text += std::string("only what says ") + (shortened ? "+rec or " : "") +
            "recompute= recomputes anything" + (others_do ? "\n" : ", no baseline does\n");
  return text;
}

}  // namespace

std::string screen_table(const std::vector<CaseRecord>& cases, const ScreenOptions& options) {
  if (cases.empty()) return "no case has been computed\n";
  const TableFacts facts = table_facts(cases, options.digits);
  std::vector<std::string> names = options.columns;
  std::vector<Column> columns = columns_of(cases, facts, names);
  if (names.empty() && options.width >= kWide)
    for (const Column& column : columns_of(cases, facts, std::vector<std::string>{"devices"}))
      columns.push_back(column);
  std::vector<Key> keys = keys_of(cases), headings;
  std::size_t others = 0;
  for (std::size_t k = 2; k < keys.size(); ++k) others += keys[k].width() + 2;
  if (others > options.width / 4) {
    headings.assign(keys.begin() + 2, keys.end());
    keys.resize(2);
  }
  others = 0;
  for (const Key& key : keys) others += key.width() + 2;
  drop_until_it_fits(columns, others, cases, facts, options);
  Table table = table_of(cases, keys, headings, columns, facts, options);
  const bool shortened = fit(table, options.width);
  std::string text = wrapped(engines_text(cases) + limits_text(cases), options.width) + "\n" +
                     grid_text(table.columns, table.rows, options.colour) + "\n" +
                     legend(cases, keys, columns, facts, options, shortened);
  if (const std::string action = action_text(cases, options.width); !action.empty())
    text += "\n" + action;
  if (options.verbose)
    for (const CaseRecord& record : cases)
      text += "\n" + details_text(record, facts.memory, options.width);
  if (!options.report.empty() && !options.verbose)
    text += wrapped("why, less memory, each device: --verbose or " + options.report, options.width);
  return text;
}

}  // namespace pfeife
