#include "plots/screen/columns.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"
#include "planner/ir/result/result_engine.h"

namespace pfeife {
namespace {

std::string time_text(const TableFacts& facts, const std::optional<Nanoseconds>& time) {
  return time ? fixed(milliseconds(*time), facts.time_decimals) : "";
}

/// The step of the plan that speed-ups are over.
std::optional<Nanoseconds> step_beside(const TableFacts& facts, const CaseRecord& record) {
  if (facts.beside.empty()) return std::nullopt;
  const auto plan = std::ranges::find_if(record.plans, [&](const PlanRecord& candidate) {
    return candidate.row.plan == facts.beside;
  });
  return plan == record.plans.end() ? std::nullopt : compared_time(record, *plan);
}

std::string speed_up(const TableFacts& facts, const CaseRecord& record, const PlanRecord& plan) {
  const auto beside = step_beside(facts, record), step = compared_time(record, plan);
  if (!beside || !step || step->count() == 0) return "";
  return fixed(static_cast<double>(beside->count()) / static_cast<double>(step->count()), 2) + "x";
}

std::string peak(const TableFacts& facts, const CaseRecord&, const PlanRecord& plan) {
  if (!plan.row.peak_memory) return "";
  const auto rank = plan.need.rank_shortage();
  if (!rank || !plan.need.reserved.empty()) return facts.memory.text(*plan.row.peak_memory);
  return "+" + facts.memory.lack_text(rank->lacking()) + " !";
}

std::string reserved(const TableFacts& facts, const CaseRecord&, const PlanRecord& plan) {
  if (!plan.row.reserved) return "";
  const auto rank = plan.need.rank_shortage();
  if (!rank) return facts.memory.text(*plan.row.reserved);
  return "+" + facts.memory.lack_text(rank->lacking()) + " !";
}

/// The fullest host.
std::string host(const TableFacts& facts, const CaseRecord&, const PlanRecord& plan) {
  if (plan.need.host.empty()) return "";
  if (const auto fullest = plan.need.host_shortage())
    return "+" + facts.memory.lack_text(fullest->lacking()) + " !";
  return facts.memory.text(std::ranges::max(plan.need.host));
}

/// One figure a rank, of those that lack memory what they lack; of more ranks than `most` the least
/// and the most.
std::string each_device(const TableFacts& facts, const PlanRecord& plan, std::size_t most) {
  const std::vector<Bytes>& peaks = plan.need.held();
  const auto shown = [&](std::size_t rank) {
    const Bytes excess = plan.need.excess(rank);
    return excess > Bytes{0} ? "+" + facts.memory.lack_text(excess) + "!"
                             : facts.memory.text(peaks[rank]);
  };
  if (peaks.size() > most) {
    const auto [least, largest] = std::ranges::minmax_element(peaks);
    const auto rank = [&](auto at) { return static_cast<std::size_t>(at - peaks.begin()); };
    return shown(rank(least)) + " to " + shown(rank(largest)) + " (rank " +
           std::to_string(rank(largest)) + ")";
  }
  std::string text;
  for (std::size_t rank = 0; rank < peaks.size(); ++rank)
    text += (rank > 0 ? " " : "") + shown(rank);
  return text;
}

/// One figure a rank; of many ranks the least and the most.
std::string rank_texts(const MemoryUnit& unit, const std::vector<Bytes>& ranks) {
  constexpr std::size_t kMostShown = 8;
  if (ranks.size() > kMostShown) {
    const auto [least, most] = std::ranges::minmax_element(ranks);
    return unit.text(*least) + " to " + unit.text(*most);
  }
  std::string text;
  for (const Bytes bytes : ranks) text += (text.empty() ? "" : " ") + unit.text(bytes);
  return text;
}

/// A term of the memory of each rank at its peak.
template <Bytes MemoryContents::*Term>
std::string term_text(const TableFacts& facts, const CaseRecord&, const PlanRecord& plan) {
  std::vector<Bytes> ranks;
  for (const MemoryContents& rank : plan.figures.memory) ranks.push_back(rank.*Term);
  return rank_texts(facts.memory, ranks);
}

/// Simulated where any plan of the case has one, else estimated.
std::string p95(const TableFacts& facts, const CaseRecord& record, const PlanRecord& plan) {
  const bool simulated = std::ranges::any_of(record.plans, [](const PlanRecord& other_plan) {
    return other_plan.row.simulate_p95.has_value();
  });
  return time_text(facts, simulated ? plan.row.simulate_p95 : plan.row.estimate_p95);
}

/// "-72.2 %", "+3.1 %".
std::string error_text(double error) {
  return (error < 0 ? "" : "+") + fixed(100 * error, 1) + " %";
}

std::string error(const TableFacts&, const CaseRecord& record, const PlanRecord& plan) {
  const auto found = error_of(plan.row, compared_engine(record));
  return found ? error_text(*found) : "";
}

std::string bound_text(const TableFacts& facts, const ResultRow& row) {
  if (!row.lower_bound) return "";
  if (row.lower_bound == row.estimate) return time_text(facts, row.lower_bound);
  double place = 1e6;
  for (int d = facts.time_decimals; d > 0; --d) place /= 10;
  const double below = std::floor(static_cast<double>(row.lower_bound->count()) / place) * place;
  return time_text(facts, Nanoseconds{static_cast<std::int64_t>(below)});
}

using Facts = const TableFacts&;
using Record = const CaseRecord&;
using Plan = const PlanRecord&;

const std::array kColumns{
    Column{"step", "step ms",
           [](Facts f, Record r, Plan p) { return time_text(f, compared_time(r, p)); }},
    Column{"p95", "p95 ms", p95},
    Column{"samples", "samples/s",
           [](Facts f, Record, Plan p) {
             return p.row.samples_per_s ? fixed(*p.row.samples_per_s, f.rate_decimals) : "";
           }},
    Column{"vs", "vs", speed_up},
    Column{"bubble", "bubble",
           [](Facts, Record, Plan p) {
             return p.row.bubble ? fixed(100 * *p.row.bubble, 1) + " %" : "";
           }},
    Column{"peak", "peak", peak},
    Column{"reserved", "reserved", reserved},
    Column{"host", "host", host},
    Column{"gap", "gap",
           [](Facts, Record r, Plan p) {
             return gap_of(r, p) ? gap_text(*gap_of(r, p)) : std::string();
           }},
    Column{"estimate", "estimated ms",
           [](Facts f, Record, Plan p) { return time_text(f, p.row.estimate); }},
    Column{"simulate", "simulated ms",
           [](Facts f, Record, Plan p) { return time_text(f, p.row.simulate); }},
    Column{"measure", "measured ms",
           [](Facts f, Record, Plan p) { return time_text(f, p.row.measure); }},
    Column{"error", "error", error},
    Column{"bound", "bound ms", [](Facts f, Record, Plan p) { return bound_text(f, p.row); }},
    Column{"limit", "limit",
           [](Facts f, Record, Plan p) {
             return p.row.memory_limit.value > 0 ? f.memory.text(p.row.memory_limit) : "";
           }},
    Column{"devices", "each device", [](Facts f, Record, Plan p) { return each_device(f, p, 8); }},
    Column{"span", "span ms", [](Facts f, Record, Plan p) { return time_text(f, p.figures.span); }},
    Column{"no_optimizer", "without optimizer ms",
           [](Facts f, Record, Plan p) { return time_text(f, p.figures.without_optimizer); }},
    Column{"latency", "latency ms",
           [](Facts f, Record, Plan p) { return time_text(f, p.figures.latency); }},
    Column{"tflops", "TFLOP/s a device",
           [](Facts, Record, Plan p) {
             return p.figures.rate ? fixed(p.figures.rate->value / 1e12, 1) : "";
           }},
    Column{"mfu", "MFU",
           [](Facts, Record, Plan p) {
             return p.figures.utilization ? fixed(100 * *p.figures.utilization, 1) + " %" : "";
           }},
    Column{"reference_peak", "peak by reference rule",
           [](Facts f, Record, Plan p) { return rank_texts(f.memory, p.figures.reference_peak); }},
    Column{"parameters", "parameters", term_text<&MemoryContents::parameters>},
    Column{"gradients", "gradients", term_text<&MemoryContents::gradients>},
    Column{"optimizer", "optimizer", term_text<&MemoryContents::optimizer>},
    Column{"saved", "saved", term_text<&MemoryContents::saved>},
    Column{"copies", "autocast copies", term_text<&MemoryContents::autocast_copies>},
    Column{"buffers", "buffers", term_text<&MemoryContents::buffers>},
    Column{"temporary", "temporary", term_text<&MemoryContents::temporary>},
    Column{"segments", "free in segments", term_text<&MemoryContents::segments>},
    Column{"context", "context", term_text<&MemoryContents::context>},
    Column{"communicators", "communicators", term_text<&MemoryContents::communicators>}};

/// Columns in the table's unit of memory.
constexpr std::array kInMemoryUnit{"peak",     "reserved",   "host",          "limit",
                                   "devices",  "parameters", "gradients",     "optimizer",
                                   "saved",    "copies",     "buffers",       "temporary",
                                   "segments", "context",    "communicators", "reference_peak"};

/// Decimals that give the smallest of the figures so many digits, and no figure more than eight.
int decimals_for(double least, double most, int digits) {
  if (least <= 0 || most <= 0) return 1;
  const int for_least = digits - 1 - static_cast<int>(std::floor(std::log10(least) + 1e-9));
  const int for_most = 7 - static_cast<int>(std::floor(std::log10(most) + 1e-9));
  return std::clamp(std::min(for_least, for_most), 0, 5);
}

template <class Visit>
void each_plan(std::span<const CaseRecord> cases, const Visit& visit) {
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) visit(record, plan);
}

/// Names; `measure` and `error` are among them where a measured time stands beside another one.
std::vector<std::string> usual_columns(std::span<const CaseRecord> cases) {
  bool beside = false;
  each_plan(cases, [&](const CaseRecord& record, const PlanRecord& plan) {
    beside = beside || measured_beside(record, plan);
  });
  std::vector<std::string> names{"step"};
  if (beside) names.insert(names.end(), {"measure", "error"});
  names.insert(names.end(),
               {"p95", "samples", "latency", "vs", "bubble", "peak", "reserved", "host", "gap"});
  return names;
}

struct Range {
  double least = 0, most = 0;
  void add(double value) {
    least = least == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
  int decimals(int digits) const { return decimals_for(least, most, digits); }
};

/// 1f1b where it is among the plans, else the first baseline that has a time.
std::string plan_beside(std::span<const CaseRecord> cases) {
  std::string first;
  for (const CaseRecord& record : cases)
    for (std::size_t i = 1; i < record.plans.size(); ++i) {
      if (is_own(record.plans[i].row) || !compared_time(record, record.plans[i])) continue;
      const std::string& name = record.plans[i].row.plan;
      if (name == "1f1b") return name;
      if (first.empty()) first = name;
    }
  return first;
}

}  // namespace

std::string MemoryUnit::text(Bytes amount) const {
  return fixed(static_cast<double>(amount.value) / bytes, 1);
}

std::string MemoryUnit::lack_text(Bytes amount) const {
  const double lack = static_cast<double>(amount.value) / bytes;
  return lack < 0.05 ? "<0.1" : fixed(lack, 1);
}

MemoryUnit memory_unit(Bytes amount) {
  const auto unit = [](Bytes size, const char* name) {
    return MemoryUnit{static_cast<double>(size.value), name};
  };
  if (amount >= kGiB) return unit(kGiB, "GiB");
  return amount >= kMiB ? unit(kMiB, "MiB") : unit(kKiB, "KiB");
}

MemoryUnit memory_unit(std::span<const CaseRecord> cases) {
  std::optional<Bytes> least;
  each_plan(cases, [&](const CaseRecord&, const PlanRecord& plan) {
    if (plan.row.peak_memory && (!least || *plan.row.peak_memory < *least))
      least = plan.row.peak_memory;
  });
  return memory_unit(least.value_or(kMiB));
}

TableFacts table_facts(std::span<const CaseRecord> cases, int digits) {
  TableFacts facts{memory_unit(cases), plan_beside(cases)};
  Range times, rates;
  each_plan(cases, [&](const CaseRecord& record, const PlanRecord& plan) {
    for (const auto& time : {compared_time(record, plan), plan.row.measure})
      if (time) times.add(milliseconds(*time));
    if (plan.row.samples_per_s) rates.add(*plan.row.samples_per_s);
  });
  facts.time_decimals = times.decimals(digits);
  facts.rate_decimals = rates.decimals(digits);
  return facts;
}

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const Column& column : kColumns) names.push_back(column.name);
  return names;
}

std::vector<Column> columns_of(std::span<const CaseRecord> cases, const TableFacts& facts,
                               std::span<const std::string> names) {
  std::vector<std::string> wanted(names.begin(), names.end());
  if (wanted.empty()) wanted = usual_columns(cases);
  std::vector<Column> columns;
  for (const std::string& name : wanted) {
    const auto column = std::ranges::find(kColumns, name, &Column::name);
    PFEIFE_CHECK(column != kColumns.end(), "no column ", name);
    bool filled = !names.empty();
    for (const CaseRecord& record : cases)
      for (const PlanRecord& plan : record.plans)
        filled = filled || !column->text(facts, record, plan).empty();
    if (!filled) continue;
    columns.push_back(*column);
    if (name == "vs") columns.back().head += " " + facts.beside;
    if (std::ranges::find(kInMemoryUnit, name) != kInMemoryUnit.end())
      columns.back().head += std::string(" ") + facts.memory.name;
  }
  return columns;
}

std::string each_device_briefly(const TableFacts& facts, const CaseRecord&,
                                const PlanRecord& plan) {
  return each_device(facts, plan, 4);
}

std::optional<double> gap_of(const CaseRecord& record, const PlanRecord& plan) {
  const bool estimated = compared_engine(record) == TraceSource::Estimated;
  return estimated || !plan.row.simulate_gap ? plan.row.gap : plan.row.simulate_gap;
}

std::string gap_words(std::span<const CaseRecord> cases) {
  std::string bound_class;
  bool differ = false;
  each_plan(cases, [&](const CaseRecord& record, const PlanRecord& plan) {
    if (!gap_of(record, plan)) return;
    differ = differ || (!bound_class.empty() && plan.row.bound_class != bound_class);
    bound_class = plan.row.bound_class;
  });
  return "gap: % over the bound on estimates" +
         (differ                ? " of the plan's class (bound_class in results.csv)"
          : bound_class.empty() ? ""
                                : " of " + bound_class);
}

std::string milliseconds_text(const std::optional<Nanoseconds>& time) {
  return time ? fixed(milliseconds(*time), table_decimals(*time)) : "-";
}

std::string heading(const CaseRecord& record) {
  std::string text = record.name;
  for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 2)
    text.replace(at, 1, ", ");
  for (std::size_t at = 0; (at = text.find('=', at)) != std::string::npos; at += 1)
    text.replace(at, 1, " ");
  return text;
}

std::string measured_text(const ResultRow& row, TraceSource engine) {
  const auto error = error_of(row, engine);
  if (!error || engine == TraceSource::Measured) return "";
  return ", measured " + milliseconds_text(row.measure) + " ms (error " + error_text(*error) + ")";
}

std::string engines_text(std::span<const CaseRecord> cases) {
  return "times " + engine_text(cases);
}

}  // namespace pfeife
