#include "planner/io/results/measurement_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/trace/trace_waits.h"

namespace pfeife {
namespace {

constexpr int kVersion = 2;
// The columns of the tables, in the order in which they are written.
const std::vector<std::string> kStepColumns = {"step", "counts", "time_ns", "loss", "round"},
                               kPeakColumns = {"rank", "peak_memory_bytes"},
                               kTraceColumns = {"rank",     "peer",   "action",
                                                "start_ns", "end_ns", "median_ns"},
                               kVersionColumns = {"format_version"};

/// A line of a table, or its head.
std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + cell;
  return line + "\n";
}

std::vector<std::size_t> counting_by_time(const std::vector<MeasuredStep>& steps) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].counts) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i].time; });
  return order;
}

Nanoseconds lower_median(std::vector<Nanoseconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::int64_t whole(const CsvTable& table, std::size_t row, const std::string& column) {
  return std::llround(number_of(table.at(row, column), column));
}
Nanoseconds time_at(const CsvTable& table, std::size_t row, const std::string& column) {
  return Nanoseconds{whole(table, row, column)};
}

/// A loss may be anything, not a number included.
double loss_at(const CsvTable& table, std::size_t row) {
  const CsvCell& cell = table.at(row, "loss");
  double value = 0;
  const char* end = cell.text.data() + cell.text.size();
  const auto [at, error] = std::from_chars(cell.text.data(), end, value);
  if (error != std::errc{} || at != end)
    throw ConfigError(cell.where, "loss is '" + cell.text + "', which is no number");
  return value;
}

/// That of the step before, or the next one.
std::size_t round_at(const CsvTable& table, std::size_t row,
                     const std::vector<MeasuredStep>& before) {
  const std::int64_t round = whole(table, row, "round");
  const std::int64_t last = before.empty() ? -1 : static_cast<std::int64_t>(before.back().round);
  if (round != last + 1 && (before.empty() || round != last))
    throw ConfigError(table.at(row, "round").where,
                      stream_all("found round ", round, ", expected ",
                                 before.empty() ? "" : std::to_string(last) + " or ", last + 1,
                                 "; rounds are numbered from 0 in the order of the steps"));
  return static_cast<std::size_t>(round);
}

/// The tables of the file, each with its place in it kept by empty lines.
std::vector<CsvTable> tables_of(const TextFile& file) {
  std::vector<CsvTable> tables;
  std::string text;
  bool any = false;
  const auto finish = [&](int lines) {
    if (any) tables.push_back(CsvTable::parse({file.name, text}));
    text.assign(static_cast<std::size_t>(lines), '\n');
    any = false;
  };
  for (const TextLine& line : lines_of(file.text)) {
    if (line.text.empty()) {
      finish(line.number);
      continue;
    }
    text += std::string(line.text) + "\n";
    any = true;
  }
  finish(0);
  return tables;
}

/// The last table. Errors: ConfigError if the file is of another version.
void check_version(const CsvTable& table) {
  table.check_columns(kVersionColumns);
  if (table.rows() != 1 || whole(table, 0, "format_version") != kVersion)
    throw ConfigError(table.where(), "this program reads a measurement of version " +
                                         std::to_string(kVersion) +
                                         "; take the pfeife that wrote it, or measure again");
}

void read_steps(const CsvTable& table, Measurement& measurement) {
  table.check_columns(kStepColumns);
  for (std::size_t row = 0; row < table.rows(); ++row)
    measurement.steps.push_back({whole(table, row, "counts") != 0, time_at(table, row, "time_ns"),
                                 loss_at(table, row), round_at(table, row, measurement.steps)});
  if (std::ranges::none_of(measurement.steps, &MeasuredStep::counts))
    throw ConfigError(table.where(), "no step counts; train for more steps");
}

void read_peaks(const CsvTable& table, std::size_t ranks, Measurement& measurement) {
  table.check_columns(kPeakColumns);
  if (table.rows() != 0 && table.rows() != ranks)
    throw ConfigError(table.where(),
                      stream_all("peaks of ", table.rows(), " ranks, the plan has ", ranks));
  for (std::size_t row = 0; row < table.rows(); ++row)
    measurement.peak_memory.push_back({whole(table, row, "peak_memory_bytes")});
}

void read_trace(const CsvTable& table, const DependencyGraph& graph, Measurement& measurement) {
  table.check_columns(kTraceColumns);
  measurement.trace = {TraceSource::Measured, graph.ranks, {}, {}};
  if (table.rows() != graph.size())
    throw ConfigError(table.where(), stream_all(table.rows(), " actions, the plan has ",
                                                graph.size(), "; it was made by another plan"));
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (const CsvCell& action = table.at(t, "action");
        action.text != to_string(task.cell) || whole(table, t, "rank") != task.rank.value)
      throw ConfigError(action.where, "found " + action.text + " where the plan has " +
                                          to_string(task.cell) + " of rank " +
                                          to_string(task.rank) + "; it was made by another plan");
    measurement.trace.events.push_back({.kind = task.kind,
                                        .rank = task.rank,
                                        .peer = task.peer,
                                        .parties = task.parties,
                                        .cell = task.cell,
                                        .start = time_at(table, t, "start_ns"),
                                        .end = time_at(table, t, "end_ns")});
    measurement.durations.push_back(time_at(table, t, "median_ns"));
  }
  explain_waits(graph, measurement.trace);
}

}  // namespace

Nanoseconds Measurement::quantile(double p) const {
  const std::vector<std::size_t> order = counting_by_time(steps);
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(order.size())));
  return steps[order.at(rank > 0 ? rank - 1 : 0)].time;
}

std::vector<Nanoseconds> Measurement::round_medians() const {
  std::vector<std::vector<MeasuredStep>> rounds;
  for (const MeasuredStep& step : steps) {
    if (step.round >= rounds.size()) rounds.resize(step.round + 1);
    rounds[step.round].push_back(step);
  }
  std::vector<Nanoseconds> medians;
  for (const std::vector<MeasuredStep>& round : rounds)
    medians.push_back(round[median_step(round)].time);
  return medians;
}

Nanoseconds Measurement::step() const { return lower_median(round_medians()); }

Measurement joined(std::span<const Measurement> rounds) {
  Measurement all = rounds.front();
  std::vector<Nanoseconds> medians{all.step()};
  for (std::size_t r = 1; r < rounds.size(); ++r) {
    for (MeasuredStep step : rounds[r].steps) {
      step.round = r;
      all.steps.push_back(step);
    }
    for (std::size_t rank = 0; rank < all.peak_memory.size(); ++rank)
      all.peak_memory[rank] = std::max(all.peak_memory[rank], rounds[r].peak_memory[rank]);
    medians.push_back(rounds[r].step());
  }
  const auto typical = std::ranges::find(medians, lower_median(medians)) - medians.begin();
  all.trace = rounds[static_cast<std::size_t>(typical)].trace;
  for (std::size_t e = 0; e < all.durations.size(); ++e) {
    std::vector<Nanoseconds> times;
    for (const Measurement& round : rounds) times.push_back(round.durations[e]);
    all.durations[e] = lower_median(std::move(times));
  }
  return all;
}

std::size_t median_step(const std::vector<MeasuredStep>& steps) {
  const std::vector<std::size_t> order = counting_by_time(steps);
  return order.at((order.size() - 1) / 2);
}

std::vector<Nanoseconds> median_durations(const std::vector<Trace>& traces,
                                          const std::vector<MeasuredStep>& steps) {
  std::vector<Nanoseconds> medians;
  for (std::size_t e = 0; e < traces.front().events.size(); ++e) {
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < traces.size(); ++i)
      if (steps[i].counts) times.push_back(traces[i].events[e].end - traces[i].events[e].start);
    medians.push_back(lower_median(std::move(times)));
  }
  return medians;
}

std::string measurement_text(const Measurement& measurement) {
  const auto ns = [](Nanoseconds time) { return std::to_string(time.count()); };
  std::string text = csv_line(kStepColumns);
  for (std::size_t i = 0; i < measurement.steps.size(); ++i) {
    const MeasuredStep& step = measurement.steps[i];
    text += csv_line({std::to_string(i), step.counts ? "1" : "0", ns(step.time),
                      shortest(step.loss), std::to_string(step.round)});
  }
  text += "\n" + csv_line(kPeakColumns);
  for (std::size_t r = 0; r < measurement.peak_memory.size(); ++r)
    text += csv_line({std::to_string(r), std::to_string(measurement.peak_memory[r].value)});
  text += "\n" + csv_line(kTraceColumns);
  for (std::size_t i = 0; i < measurement.trace.events.size(); ++i) {
    const Event& event = measurement.trace.events[i];
    text += csv_line({to_string(event.rank), to_string(event.peer), to_string(event.cell),
                      ns(event.start), ns(event.end), ns(measurement.durations[i])});
  }
  return text + "\n" + csv_line(kVersionColumns) + csv_line({std::to_string(kVersion)});
}

Measurement read_measurement(const std::filesystem::path& path, const DependencyGraph& graph) {
  const TextFile file = read_text_file(path);
  const std::vector<CsvTable> tables = tables_of(file);
  constexpr std::size_t kTables = 4;
  if (tables.size() != kTables)
    throw ConfigError({file.name},
                      stream_all("has ", tables.size(),
                                 " tables, expected steps, peaks, the trace and the version of the "
                                 "format; measure again with this program"));
  check_version(tables.back());
  Measurement measurement;
  read_steps(tables[0], measurement);
  read_peaks(tables[1], graph.ranks, measurement);
  read_trace(tables[2], graph, measurement);
  return measurement;
}

}  // namespace pfeife
