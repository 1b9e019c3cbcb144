#include <algorithm>
#include <cmath>

#include "experiments/show/figure.h"
#include "planner/io/files/quantity.h"
#include "planner/ir/basics/units.h"

namespace pfeife {
namespace {

constexpr const char* kFigureNames[] = {"step",     "samples_per_s", "tokens_per_s", "of_1f1b",
                                        "of_bound", "bubble",        "memory"};

double gib(double bytes) { return bytes / static_cast<double>(kGiB.value); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// "memory_limit_bytes" to "memory limit", "training.precision" to "precision".
std::string spoken(std::string name) {
  name.erase(0, name.rfind('.') + 1);  // of a key's path its end
  for (const char* unit : {"_bytes", "_ms", "_fraction"})
    if (name.ends_with(unit)) name.resize(name.size() - std::string_view(unit).size());
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// What the values of a swept key count, where all are of one kind.
struct KeyUnit {
  const char* name;
  std::optional<double> (*read)(const std::string& text);
};
const KeyUnit kKeyUnits[] = {
    {"", [](const std::string& text) { return parse_number(text); }},
    {"GiB",
     [](const std::string& text) -> std::optional<double> {
       const auto bytes = parse_bytes(text).value;
       return bytes ? std::optional(gib(static_cast<double>(bytes->value))) : std::nullopt;
     }},
    {"GB/s",
     [](const std::string& text) -> std::optional<double> {
       const auto rate = parse_bytes_per_second(text).value;
       return rate ? std::optional(rate->value / 1e9) : std::nullopt;
     }},
    {"ms", [](const std::string& text) -> std::optional<double> {
       const auto time = parse_duration(text).value;
       return time ? std::optional(static_cast<double>(time->count()) / 1e6) : std::nullopt;
     }}};

}  // namespace

std::string ShownKey::text(std::size_t row) const {
  const bool counted = title == "devices" || title == "microbatches";
  return counted ? texts[row] + " " + title : texts[row];
}

FigureTable::FigureTable(const CsvTable& table) : table_(table), columns_(table.columns()) {
  for (const char* column : {"case", "plan", "family", "feasible", "samples_per_s"})
    if (!table_.has(column))
      throw ConfigError(table_.where(), std::string("column '") + column +
                                            "' is missing; figures are drawn of the results.csv "
                                            "that pfeife-exp writes");
  for (std::size_t row = 0; row < rows(); ++row) {
    const std::string& name = text(row, "case");
    if (const auto time = step(row); time && text(row, "family") == "1f1b") {
      const auto [found, is_new] = steps_of_1f1b_.emplace(name, *time);
      found->second = std::min(found->second, *time);
    }
  }
}

const std::string& FigureTable::text(std::size_t row, const std::string& column) const {
  return table_.at(row, column).text;
}

std::optional<double> FigureTable::number(std::size_t row, const std::string& column) const {
  return table_.has(column) ? parse_number(text(row, column)) : std::nullopt;
}

std::optional<double> FigureTable::step(std::size_t row) const {
  const auto rate = number(row, "samples_per_s"), count = number(row, "microbatches"),
             size = number(row, "microbatch_size");
  if (!rate || !count || !size || !(*rate > 0)) return std::nullopt;
  return 1000 * *count * *size / *rate;
}

std::optional<double> FigureTable::bound(std::size_t row) const {
  return number(row, "lower_bound_ms");
}

std::string FigureTable::bound_name(std::span<const std::size_t> rows) const {
  std::string all;
  for (const std::size_t row : rows) {
    if (!bound(row) || !table_.has("bound_class")) continue;
    const std::string& own = text(row, "bound_class");
    if (!all.empty() && own != all) return "bound of the plan's class";
    all = own;
  }
  return all.empty() ? "bound" : "bound of " + all;
}

std::vector<std::optional<double>> FigureTable::each(
    const std::function<std::optional<double>(std::size_t)>& of_row) const {
  std::vector<std::optional<double>> values;
  for (std::size_t row = 0; row < rows(); ++row) values.push_back(of_row(row));
  return values;
}

/// Whose the steps are: all of one engine, or the best of each case.
std::string FigureTable::engine() const {
  std::string all;
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto shown = step(row);
    if (!shown) continue;
    std::string engine;
    for (const auto& [column, word] : {std::pair{"measure_ms", "measured"},
                                       {"simulate_ms", "simulated"},
                                       {"estimate_ms", "estimated"}})
      if (const auto time = number(row, column);
          engine.empty() && time && std::fabs(*time - *shown) < 1e-4 * *time)
        engine = word;
    if (!all.empty() && engine != all) return "of each case's engine";
    all = engine;
  }
  return all;
}

ShownFigure FigureTable::known_figure(const std::string& name,
                                      const FigureSettings& settings) const {
  const auto ratio = [&](const auto& other) {
    return each([&](std::size_t row) -> std::optional<double> {
      const auto own = step(row), than = other(row);
      return own && than ? std::optional(100 * *than / *own) : std::nullopt;
    });
  };
  if (name == "step") {
    std::vector<std::optional<double>> values = each([&](std::size_t row) { return step(row); });
    double most = 0;
    for (const auto& value : values) most = std::max(most, value.value_or(0));
    const bool seconds = most >= 10'000;
    for (auto& value : values)
      if (value && seconds) *value /= 1000;
    return {std::string("step, ") + (seconds ? "s" : "ms") + ", " + engine(), false, false,
            std::move(values)};
  }
  if (name == "samples_per_s")
    return {"samples/s, " + engine(), true, false,
            each([&](std::size_t row) { return number(row, "samples_per_s"); })};
  if (name == "tokens_per_s") {
    if (settings.tokens == 0)
      throw ConfigError(settings.place("y"),
                        "tokens_per_s needs the tokens of a sample: tokens (--tokens 1024)");
    const auto tokens = static_cast<double>(settings.tokens);
    return {"1000 tokens/s, " + engine(), true, false,
            each([&](std::size_t row) -> std::optional<double> {
              const auto rate = number(row, "samples_per_s");
              return rate ? std::optional(*rate * tokens / 1000) : std::nullopt;
            })};
  }
  if (name == "of_1f1b")
    return {"throughput, % of 1F1B, " + engine(), true, false,
            ratio([&](std::size_t row) -> std::optional<double> {
              const auto found = steps_of_1f1b_.find(text(row, "case"));
              return found == steps_of_1f1b_.end() ? std::nullopt : std::optional(found->second);
            })};
  if (name == "of_bound") {
    std::vector<std::size_t> all;
    for (std::size_t row = 0; row < rows(); ++row) all.push_back(row);
    return {"throughput, % of the " + bound_name(all) + ", " + engine(), true, false,
            ratio([&](std::size_t row) { return bound(row); })};
  }
  if (name == "bubble")
    return {"bubble, %, " + engine(), false, false,
            each([&](std::size_t row) -> std::optional<double> {
              const auto bubble = number(row, "bubble_fraction");
              return bubble ? std::optional(100 * *bubble) : std::nullopt;
            })};
  const auto has = [&](const char* column) {
    for (std::size_t row = 0; row < rows(); ++row)
      if (number(row, column)) return true;
    return false;
  };
  const bool reserved = has("reserved_memory_bytes");
  return {reserved ? "reserved, GiB, modelled" : "peak memory, GiB, estimated", false, true,
          each([&](std::size_t row) -> std::optional<double> {
            const auto bytes =
                number(row, reserved ? "reserved_memory_bytes" : "peak_memory_bytes");
            return bytes ? std::optional(gib(*bytes)) : std::nullopt;
          })};
}

ShownFigure FigureTable::column_figure(const std::string& name) const {
  ShownFigure figure{.title = spoken(name)};
  double scale = 1;
  if (name.ends_with("_bytes")) scale = gib(1), figure.title += ", GiB", figure.is_memory = true;
  if (name.ends_with("_ms")) figure.title += ", ms";
  if (name.ends_with("_fraction")) scale = 100, figure.title += ", %";
  figure.more_is_better = name == "model_flops_utilization" || name == "flops_per_s_of_device";
  figure.values = each([&](std::size_t row) -> std::optional<double> {
    const auto value = number(row, name);
    return value ? std::optional(*value * scale) : std::nullopt;
  });
  return figure;
}

ShownFigure FigureTable::figure(const FigureSettings& settings, const std::string& axis) const {
  const std::string& name = axis == "x" ? settings.x : settings.y;
  ShownFigure figure;
  if (std::ranges::find(kFigureNames, name) != std::end(kFigureNames))
    figure = known_figure(name, settings);
  else if (table_.has(name))
    figure = column_figure(name);
  if (std::ranges::any_of(figure.values, [](const auto& value) { return value.has_value(); }))
    return figure;
  std::vector<std::string> there(std::begin(kFigureNames), std::end(kFigureNames));
  if (!figure.values.empty() && name == "of_1f1b")
    throw ConfigError(settings.place(axis),
                      "no case has a plan of 1f1b to compare with; add it to `baselines`");
  for (const std::string& column : columns_) {
    const auto values = column_figure(column).values;
    if (std::ranges::any_of(values, [](const auto& value) { return value.has_value(); }))
      there.push_back(column);
  }
  const std::string nearest = nearest_spelling(name, there);
  throw ConfigError(settings.place(axis),
                    "no row has the figure '" + name + "'" +
                        (nearest.empty() ? "" : ", did you mean '" + nearest + "'?") +
                        "; use one of " + joined(there));
}

std::string FigureTable::column_named(const FigureSettings& settings,
                                      const std::string& axis) const {
  const std::string& asked = axis == "x"       ? settings.x
                             : axis == "y"     ? settings.y
                             : axis == "lines" ? settings.lines
                                               : settings.facet;
  const std::string column = asked == "memory_limit" ? "memory_limit_bytes" : asked;
  if (table_.has(column)) return column;
  // The end of a key's path, where it is that of one key: "memory".
  const auto ends = [&](const std::string& name) { return name.ends_with("." + column); };
  if (std::ranges::count_if(columns_, ends) == 1) return *std::ranges::find_if(columns_, ends);
  const std::string nearest = nearest_spelling(asked, columns_);
  throw ConfigError(settings.place(axis),
                    "there is no column '" + asked + "'" +
                        (nearest.empty() ? "" : ", did you mean '" + nearest + "'?") +
                        "; the results have " + joined(columns_));
}

void FigureTable::check_names(const FigureSettings& settings) const {
  const auto check_figure = [&](const std::string& axis) {
    const std::string& name = axis == "x" ? settings.x : settings.y;
    if (std::ranges::find(kFigureNames, name) == std::end(kFigureNames))
      column_named(settings, axis);
  };
  if (settings.kind == FigureKind::Front)
    check_figure("x");
  else
    column_named(settings, "x");
  if (settings.kind == FigureKind::Phase)
    column_named(settings, "y");
  else
    check_figure("y");
  column_named(settings, "lines");
  if (!settings.facet.empty()) column_named(settings, "facet");
}

ShownKey FigureTable::key(const FigureSettings& settings, const std::string& axis) const {
  const std::string column = column_named(settings, axis);
  ShownKey key{.title = spoken(column)};
  for (std::size_t row = 0; row < rows(); ++row) key.texts.push_back(text(row, column));
  for (const KeyUnit& unit : kKeyUnits) {
    key.values.clear();
    for (const std::string& text : key.texts)
      if (const auto value = unit.read(text)) key.values.push_back(*value);
    if (key.values.size() < rows() || key.values.empty()) continue;
    if (column.ends_with("_bytes")) {
      for (double& value : key.values) value = std::round(10 * gib(value)) / 10;
      key.title += ", GiB";
    } else if (column.ends_with("_ms")) {
      key.title += ", ms";
    } else if (*unit.name != '\0') {
      key.title += std::string(", ") + unit.name;
    }
    return key;
  }
  key.values.clear();
  for (std::string& text : key.texts) {
    if (column == "model" || column == "cluster")
      text = std::filesystem::path(text).stem().string();
    const auto found = std::ranges::find(key.words, text);
    key.values.push_back(static_cast<double>(found - key.words.begin()));
    if (found == key.words.end()) key.words.push_back(text);
  }
  return key;
}

std::vector<std::string> FigureTable::case_columns() const {
  std::vector<std::string> names{"model", "cluster", "devices", "microbatches"};
  // Swept keys stand between `calibration` and `family`.
  const auto from = std::ranges::find(columns_, "calibration"),
             to = std::ranges::find(columns_, "family");
  if (from < to) names.insert(names.end(), from + 1, to);
  std::erase_if(names, [&](const std::string& name) { return !table_.has(name); });
  return names;
}

}  // namespace pfeife
