#include "experiments/show/figure.h"

#include <algorithm>
#include <map>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/pdf.h"
#include "planner/io/results/results.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/result/result_engine.h"
#include "plots/figure/chart.h"
#include "plots/figure/pgf.h"
#include "plots/figure/phase.h"

namespace pfeife {
namespace {

constexpr const char* kPlan = "planned";

/// Which rows a figure shows, and what they are on.
class Selection {
 public:
  Selection(const FigureTable& table, const FigureSettings& settings)
      : table_(table), settings_(settings) {
    read_where();
    for (std::size_t row = 0; row < table.rows(); ++row)
      if (is_wanted(row)) has_baselines_ = has_baselines_ || !is_own(row);
    for_each_family();
    if (!settings.facet.empty()) facet_ = table.key(settings, "facet");
    if (!by_plan() && settings.kind != FigureKind::Phase) lines_ = table.key(settings, "lines");
    for (const bool own : {false, true})  // so that a family looks alike in every figure
      for (std::size_t row = 0; row < table.rows(); ++row)
        if (const std::string name = line_name(row);
            is_own(row) == own && !name.empty() && !is_plan_line(row))
          looks_.emplace(name, plots::line_look(looks_.size()));
  }

  /// The line that the row is on; "" = the row is not drawn.
  std::string line_name(std::size_t row) const {
    if (settings_.kind == FigureKind::Phase) return table_.text(row, "family");
    if (!by_plan()) return table_.planned(row) ? lines_->text(row) : "";
    if (!is_plan_line(row)) return table_.text(row, settings_.lines);
    if (table_.text(row, "plan") == kLessMemory && settings_.kind != FigureKind::Front) return "";
    return planned_family_.empty() ? kPlan : std::string(kPlan) + " (" + planned_family_ + ")";
  }
  plots::LineLook look(std::size_t row) const {
    return is_plan_line(row) && by_plan() ? plots::plan_look() : looks_.at(line_name(row));
  }
  bool is_wanted(std::size_t row) const {
    return std::ranges::all_of(
        where_, [&](const auto& wish) { return table_.text(row, wish.first) == wish.second; });
  }
  std::string panel(std::size_t row) const { return facet_ ? facet_->text(row) : ""; }
  double panel_order(std::size_t row) const { return facet_ ? facet_->values[row] : 0; }
  bool by_plan() const { return settings_.lines == "family" || settings_.lines == "plan"; }

  /// "each point is the fastest of the cases that differ in plan.families", if that is so.
  std::string what_is_left() const {
    std::vector<std::string> named{table_.column_named(settings_, "x")};
    if (settings_.kind == FigureKind::Phase) named.push_back(table_.column_named(settings_, "y"));
    if (facet_) named.push_back(table_.column_named(settings_, "facet"));
    named.push_back(table_.column_named(settings_, "lines"));
    std::string names;
    for (const std::string& column : table_.case_columns()) {
      if (std::ranges::find(named, column) != named.end() ||
          std::ranges::any_of(where_, [&](const auto& wish) { return wish.first == column; }))
        continue;
      std::string first;
      bool varies = false, begun = false;
      for (std::size_t row = 0; row < table_.rows(); ++row) {
        if (!is_wanted(row)) continue;
        varies = varies || (begun && table_.text(row, column) != first);
        first = table_.text(row, column);
        begun = true;
      }
      if (varies) names += (names.empty() ? "" : ", ") + column;
    }
    return names.empty() ? "" : "each point is the fastest of the cases that differ in " + names;
  }

 private:
  bool is_own(std::size_t row) const {
    return table_.planned(row) || table_.text(row, "plan") == kLessMemory;
  }
  bool is_plan_line(std::size_t row) const {
    return by_plan() && settings_.kind != FigureKind::Phase && has_baselines_ && is_own(row);
  }
  void for_each_family() {
    std::vector<std::string> families;
    for (std::size_t row = 0; row < table_.rows(); ++row)
      if (is_wanted(row) && table_.planned(row) && !table_.text(row, "family").empty())
        families.push_back(table_.text(row, "family"));
    const bool same = !families.empty() && std::ranges::count(families, families.front()) ==
                                               static_cast<std::ptrdiff_t>(families.size());
    if (same) planned_family_ = families.front();
  }
  void read_where() {
    for (const std::string& wish : settings_.where) {
      const std::size_t equals = wish.find('=');
      if (equals == std::string::npos || equals == 0)
        throw ConfigError(
            settings_.place("where"),
            "where: expected name=value, for example devices=8, found '" + wish + "'");
      FigureSettings named;  // for its message
      named.x = wish.substr(0, equals);
      named.places["x"] = settings_.place("where");
      const ShownKey key = table_.key(named, "x");
      const std::string value = wish.substr(equals + 1);
      if (std::ranges::find(key.texts, value) == key.texts.end()) {
        std::vector<std::string> there = key.texts;
        std::ranges::sort(there);
        const auto repeated = std::ranges::unique(there);
        there.erase(repeated.begin(), repeated.end());
        std::string list;
        for (const std::string& text : there) list += (list.empty() ? "" : ", ") + text;
        throw ConfigError(settings_.place("where"),
                          "no row has " + named.x + " '" + value + "'; there are " + list);
      }
      where_.emplace_back(table_.column_named(named, "x"), value);
    }
  }

  const FigureTable& table_;
  const FigureSettings& settings_;
  std::optional<ShownKey> facet_, lines_;
  std::vector<std::pair<std::string, std::string>> where_;
  bool has_baselines_ = false;
  std::string planned_family_;
  std::map<std::string, plots::LineLook> looks_;
};

/// Fitting before not fitting, then the faster one.
bool better(const FigureTable& table, std::size_t a, std::size_t b) {
  if (table.fits(a) != table.fits(b)) return table.fits(a);
  return table.step(a).value_or(1e300) < table.step(b).value_or(1e300);
}

/// [panel by order and name] the rows that have both figures.
std::map<std::pair<double, std::string>, std::vector<std::size_t>> panels_of(
    const FigureTable& table, const Selection& selection) {
  std::map<std::pair<double, std::string>, std::vector<std::size_t>> panels;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (selection.is_wanted(row) && !selection.line_name(row).empty())
      panels[{selection.panel_order(row), selection.panel(row)}].push_back(row);
  return panels;
}

std::string unit_of_key(const ShownKey& key) {
  const std::size_t comma = key.title.rfind(", ");
  return comma != std::string::npos ? key.title.substr(comma + 2)
         : key.words.empty()        ? key.title
                                    : "";
}

/// One limit of all rows, in GiB.
std::optional<double> common_limit(const FigureTable& table, std::span<const std::size_t> rows) {
  std::optional<double> limit;
  for (const std::size_t row : rows) {
    const auto own = table.number(row, "memory_limit_bytes");
    if (!own || !(*own > 0) || (limit && *limit != *own)) return std::nullopt;
    limit = own;
  }
  if (limit) *limit /= static_cast<double>(kGiB.value);
  return limit;
}

std::string hint(const std::string& line, const std::string& where, double y,
                 const std::string& title, bool fits) {
  return line + ", " + where + ": " + fixed(y, y < 10 ? 2 : 1) + " (" + title + ")" +
         (fits ? "" : ", does not fit");
}

/// The lines of a panel in the order of the rows, the plan's last, which is drawn above all.
std::vector<ChartLine> lines_of(const Selection& selection, std::span<const std::size_t> rows,
                                const std::map<std::string, std::vector<ChartPoint>>& points) {
  std::vector<ChartLine> lines;
  for (const bool plan : {false, true})
    for (const std::size_t row : rows) {
      const std::string name = selection.line_name(row);
      const auto found = points.find(name);
      const bool is_plan = selection.look(row) == plots::plan_look();
      if (found != points.end() && is_plan == plan &&
          std::ranges::find(lines, name, &ChartLine::name) == lines.end())
        lines.push_back({name, selection.look(row), found->second});
    }
  return lines;
}

/// A line of another class that is beyond the bound somewhere; "" = none is.
std::string passes_bound(const std::map<double, double>& bound,
                         const std::map<double, std::pair<double, std::string>>& outside,
                         bool more_is_better) {
  for (const auto& [place, other] : outside)
    if (const auto found = bound.find(place); found != bound.end() &&
                                              other.first != found->second &&
                                              (other.first > found->second) == more_is_better)
      return other.second;
  return "";
}

/// The lines none of whose rows has the figure, although it has a time.
std::string lines_without(const FigureTable& table, const Selection& selection,
                          const ShownFigure& figure) {
  std::map<std::string, bool> has;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (const std::string line = selection.line_name(row);
        !line.empty() && selection.is_wanted(row) && table.step(row))
      has[line] |= figure.values[row].has_value();
  std::string text;
  for (const auto& [line, is_drawn] : has)
    if (!is_drawn) text += (text.empty() ? "" : ", ") + line;
  return text;
}

DrawnFigure draw_lines(const FigureTable& table, const FigureSettings& settings,
                       const Selection& selection, const FigureStyle& style) {
  const ShownKey x = table.key(settings, "x");
  const ShownFigure y = table.figure(settings, "y");
  Chart chart{.title = settings.title, .x_title = x.title, .y_title = y.title, .x_words = x.words};
  const LineOrder order{y.more_is_better, unit_of_key(x)};
  const bool timed = settings.y == "step" || settings.y.ends_with("s_per_s");
  DrawnFigure figure;
  std::vector<std::string> passed;
  std::vector<std::size_t> bounded;  // rows
  for (const auto& [key, rows] : panels_of(table, selection)) {
    std::map<std::string, std::map<double, std::size_t>> chosen;  // [line][x] row
    std::map<double, double> bound;                               // [x]
    std::map<double, std::pair<double, std::string>> outside;     // [x] best of another class
    for (const std::size_t row : rows) {
      if (!y.values[row]) continue;
      auto [found, is_new] = chosen[selection.line_name(row)].emplace(x.values[row], row);
      if (!is_new && better(table, row, found->second)) found->second = row;
    }
    ChartPanel panel{.title = key.second};
    std::map<std::string, std::vector<ChartPoint>> points;
    for (const auto& [line, by_x] : chosen)
      for (const auto& [place, row] : by_x) {
        const double value = *y.values[row];
        points[line].push_back(
            {place, value, table.fits(row),
             hint(line, x.title + " " + x.texts[row], value, y.title, table.fits(row))});
        const auto limit = table.bound(row), own = table.step(row);
        if (!timed || !selection.by_plan() || !own) continue;
        if (!limit) {  // what does not fit is of no class
          if (!table.fits(row)) continue;
          const auto [other, is_first] = outside.emplace(place, std::pair(value, line));
          if (!is_first && (value > other->second.first) == y.more_is_better)
            other->second = {value, line};
          continue;
        }
        bounded.push_back(row);
        const double best = y.more_is_better ? value * *own / *limit : value * *limit / *own;
        const auto [found, is_new] = bound.emplace(place, best);
        if (!is_new && (best > found->second) == y.more_is_better) found->second = best;
      }
    panel.lines = lines_of(selection, rows, points);
    if (panel.lines.empty()) continue;
    const std::string prefix = key.second.empty() ? "" : key.second + ": ";
    const std::string passes = passes_bound(bound, outside, y.more_is_better);
    if (!passes.empty())
      figure.sentences.push_back(prefix + "no bound is drawn: " + passes +
                                 " is of another class, and better than it");
    else
      for (const auto& [place, best] : bound) panel.bound.push_back({place, best, true, ""});
    if (y.is_memory) panel.limit = common_limit(table, rows);
    if (const std::string best = leaders(chart, panel, order); !best.empty() && !y.is_memory)
      figure.sentences.push_back(prefix + best);
    if (!y.is_memory)  // its lines do not compete
      for (const std::string& sentence : crossovers(chart, panel, order))
        passed.push_back(prefix + sentence);
    if (panel.limit) chart.limit_name = "limit, " + fixed(*panel.limit, 1) + " GiB";
    chart.panels.push_back(std::move(panel));
  }
  chart.bound_name = table.bound_name(bounded);
  if (settings.y == "of_bound")
    if (const std::string lines = lines_without(table, selection, y); !lines.empty())
      figure.sentences.push_back("not drawn, of another class than the bound: " + lines);
  if (const std::string left = selection.what_is_left(); !left.empty())
    figure.sentences.push_back(left);
  chart.notes = figure.sentences;
  figure.sentences.insert(figure.sentences.end(), passed.begin(), passed.end());
  figure.svg = chart_svg(chart, style);
  return figure;
}

DrawnFigure draw_front(const FigureTable& table, const FigureSettings& settings,
                       const Selection& selection, const FigureStyle& style) {
  const ShownFigure x = table.figure(settings, "x"), y = table.figure(settings, "y");
  Chart chart{.title = settings.title,
              .x_title = x.title,
              .y_title = y.title,
              .memory_is_x = true,
              .joined = false,
              .bound_name = "front of what fits"};
  DrawnFigure figure;
  for (const auto& [key, rows] : panels_of(table, selection)) {
    std::map<std::string, std::vector<ChartPoint>> points;
    struct Place {
      double x, y;
      std::string line;
    };
    std::vector<Place> fitting;
    for (const std::size_t row : rows) {
      if (!x.values[row] || !y.values[row]) continue;
      const std::string line = selection.line_name(row);
      points[line].push_back({*x.values[row], *y.values[row], table.fits(row),
                              hint(line, x.title + " " + fixed(*x.values[row], 1), *y.values[row],
                                   y.title, table.fits(row))});
      if (table.fits(row)) fitting.push_back({*x.values[row], *y.values[row], line});
    }
    ChartPanel panel{.title = key.second, .lines = lines_of(selection, rows, points)};
    if (panel.lines.empty()) continue;
    std::ranges::stable_sort(fitting, [&](const Place& a, const Place& b) {
      return a.x != b.x ? a.x < b.x : (a.y > b.y) == y.more_is_better && a.y != b.y;
    });
    std::string named;
    for (const Place& place : fitting) {
      if (!panel.bound.empty()) {
        const double best = panel.bound.back().y;
        if (place.y == best || (place.y > best) != y.more_is_better) continue;
        panel.bound.push_back({place.x, best, true, ""});  // a stair
      }
      panel.bound.push_back({place.x, place.y, true, ""});
      named += (named.empty() ? "" : ", ") + place.line + " (" + fixed(place.x, 1) + ", " +
               fixed(place.y, place.y < 10 ? 2 : 1) + ")";
    }
    if (x.is_memory) panel.limit = common_limit(table, rows);
    if (panel.limit) chart.limit_name = "limit, " + fixed(*panel.limit, 1) + " GiB";
    if (!named.empty())
      figure.sentences.push_back((key.second.empty() ? "" : key.second + ": ") +
                                 "front (x, y): " + named);
    chart.panels.push_back(std::move(panel));
  }
  if (chart.panels.size() <= 1) chart.notes = figure.sentences;
  figure.svg = chart_svg(chart, style);
  return figure;
}

DrawnFigure draw_phase(const FigureTable& table, const FigureSettings& settings,
                       const Selection& selection, const FigureStyle& style) {
  const ShownKey x = table.key(settings, "x"), y = table.key(settings, "y");
  const auto without_unit = [](const ShownKey& key) {  // the values have one
    return key.title.substr(0, key.title.find(", "));
  };
  PhaseDiagram diagram{
      .title = settings.title, .x_title = without_unit(x), .y_title = without_unit(y)};
  std::map<double, std::string> columns, lines;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (selection.is_wanted(row)) {
      columns[x.values[row]] = x.texts[row];
      lines[y.values[row]] = y.texts[row];
    }
  for (const auto& [value, text] : columns) diagram.x_words.push_back(text);
  for (const auto& [value, text] : lines) diagram.y_words.push_back(text);
  const auto place = [](const std::map<double, std::string>& values, double value) {
    return static_cast<std::size_t>(std::distance(values.begin(), values.find(value)));
  };
  DrawnFigure figure;
  std::map<std::string, std::size_t> wins;
  for (const auto& [key, rows] : panels_of(table, selection)) {
    std::map<std::pair<std::size_t, std::size_t>, std::map<std::string, double>> steps;
    std::map<std::string, std::size_t> row_of;
    PhasePanel panel{key.second, std::vector<PhaseCell>(columns.size() * lines.size())};
    for (const std::size_t row : rows) {
      const auto time = table.step(row);
      const std::string family = selection.line_name(row);
      row_of[family] = row;
      if (!time || !table.fits(row)) continue;
      auto& best = steps[{place(lines, y.values[row]), place(columns, x.values[row])}];
      const auto [found, is_new] = best.emplace(family, *time);
      found->second = std::min(found->second, *time);
    }
    for (const auto& [at, by_family] : steps) {
      const auto first = std::ranges::min_element(
          by_family, [](const auto& a, const auto& b) { return a.second < b.second; });
      double next = 0;
      for (const auto& [family, time] : by_family)
        if (family != first->first && (next == 0 || time < next)) next = time;
      const double lead = next > 0 ? 100 * (next / first->second - 1) : 0;
      PhaseCell& cell = panel.cells[at.first * columns.size() + at.second];
      cell = {first->first, selection.look(row_of[first->first]),
              next > 0 ? "+" + fixed(lead, 1) + " %" : "",
              first->first + ", the next takes " + fixed(lead, 1) + " % longer"};
      ++wins[first->first];
    }
    diagram.panels.push_back(std::move(panel));
  }
  std::string counted;
  for (const auto& [family, count] : wins)
    counted += (counted.empty() ? "fastest that fits: " : ", ") + family + " in " +
               std::to_string(count) + (count == 1 ? " cell" : " cells");
  if (!counted.empty()) figure.sentences.push_back(counted);
  if (const std::string left = selection.what_is_left(); !left.empty())
    figure.sentences.push_back(left);
  diagram.notes = figure.sentences;
  diagram.text_note = "percents: how much longer the next family takes";
  figure.svg = phase_svg(diagram, style);
  return figure;
}

FigureStyle style_of(const FigureSettings& settings) {
  FigureStyle style = settings.column ? column_style() : FigureStyle{};
  if (settings.width) style.width = *settings.width;
  if (settings.height) style.height = *settings.height;
  if (settings.no_title) style.words = false;
  return style;
}

}  // namespace

DrawnFigure draw_figure(const CsvTable& results, const FigureSettings& settings) {
  const FigureTable table(results);
  const FigureStyle style = style_of(settings);
  const Selection selection(table, settings);
  return settings.kind == FigureKind::Lines   ? draw_lines(table, settings, selection, style)
         : settings.kind == FigureKind::Front ? draw_front(table, settings, selection, style)
                                              : draw_phase(table, settings, selection, style);
}

std::string write_figure(const CsvTable& results, const FigureSettings& settings,
                         const std::filesystem::path& svg) {
  const DrawnFigure figure = draw_figure(results, settings);
  write_file(svg, figure.svg);
  std::string text = svg.string() + "\n";
  const auto other = [&](const char* ending) {
    return std::filesystem::path(svg).replace_extension(ending);
  };
  if (settings.pgf) {
    write_file(other(".pgf"), plots::pgf_of(figure.svg));
    text += other(".pgf").string() + "\n";
  }
  if (settings.pdf)
    text += other(".pdf").string() + ", made by " + write_pdf(svg, other(".pdf")) + "\n";
  for (const std::string& sentence : figure.sentences) text += "  " + sentence + "\n";
  return text;
}

void check_figures(const Experiment& experiment) {
  if (experiment.figures.empty()) return;
  CaseRecord record;
  for (const CaseConfig& config : experiment.cases)
    record.swept.insert(record.swept.end(), config.swept.begin(), config.swept.end());
  const FigureTable head(CsvTable::parse({"results.csv", results_csv({record})}));
  for (const FigureSettings& figure : experiment.figures) head.check_names(figure);
}

std::string write_figures(const Experiment& experiment, const std::filesystem::path& out) {
  std::string text;
  if (experiment.figures.empty()) return text;
  const CsvTable results = CsvTable::parse(read_text_file(out / "results.csv"));
  for (const FigureSettings& figure : experiment.figures) try {
      text += write_figure(results, figure, out / (figure.file_stem() + ".svg"));
    } catch (const ConfigError& error) {
      text += std::string("not drawn: ") + error.what() + "\n";
    }
  return text;
}

}  // namespace pfeife
