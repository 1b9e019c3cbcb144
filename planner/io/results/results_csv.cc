// results.csv. Columns and their names: results_fields.h.
#include <algorithm>

#include "planner/io/files/csv_table.h"
#include "planner/io/results/results_fields.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

std::string cell(const std::string& text) { return csv_cell(text); }
std::string cell(std::integral auto number) { return std::to_string(number); }
std::string cell(bool value) { return value ? "1" : "0"; }
std::string cell(Bytes bytes) { return std::to_string(bytes.value); }
std::string cell(double seconds) { return fixed(seconds, 3); }
std::string cell(const std::optional<double>& value) { return value ? fixed(*value, 6) : ""; }
std::string cell(const std::optional<Bytes>& bytes) { return bytes ? cell(*bytes) : ""; }
std::string cell(const std::optional<Nanoseconds>& time) {
  return time ? fixed(static_cast<double>(time->count()) / 1e6, 6) : "";
}
std::string cell(const std::vector<std::int32_t>& cuts) {
  std::string out;
  for (const std::int32_t cut : cuts) out += (out.empty() ? "" : " ") + std::to_string(cut);
  return out;
}

std::string cell(const std::optional<FlopsPerSecond>& rate) {
  return rate ? fixed(rate->value, 0) : "";
}
std::string cell(const std::vector<Bytes>& ranks) {
  std::string out;
  for (const Bytes bytes : ranks) out += (out.empty() ? "" : " ") + cell(bytes);
  return out;
}

/// One field of each rank's memory in each column.
template <class Visit>
void each_column(const std::vector<MemoryContents>& ranks, const Visit& visit) {
  std::size_t number = 0;
  const MemoryContents names;
  each_field(names, [&](const std::string& name, const Bytes&) {
    std::vector<Bytes> column;
    for (const MemoryContents& rank : ranks) {
      std::size_t at = 0;
      each_field(rank, [&](const char*, const Bytes& bytes) {
        if (at++ == number) column.push_back(bytes);
      });
    }
    visit(name + "_of_rank", column);
    ++number;
  });
}

/// `visit(name, text)` for every column of the figures.
template <class Visit>
void each_cell(const PlanFigures& figures, const Visit& visit) {
  each_field(figures, [&](const std::string& name, const auto& field) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, std::vector<MemoryContents>>)
      each_column(field, [&](const std::string& column, const std::vector<Bytes>& ranks) {
        visit(column, cell(ranks));
      });
    else
      visit(name, cell(field));
  });
}

/// The column after which those of the case itself stand: files and swept keys.
constexpr const char* kLastName = "plan";

std::vector<std::string> swept_keys(const std::vector<CaseRecord>& cases) {
  std::vector<std::string> keys;
  for (const CaseRecord& record : cases)
    for (const SweptKey& swept : record.swept)
      if (std::ranges::find(keys, swept.key) == keys.end()) keys.push_back(swept.key);
  return keys;
}

/// After the others, where a plan offloads.
constexpr const char* kHostColumn = "host_memory_bytes_of_host";

bool offloads(const std::vector<CaseRecord>& cases) {
  return std::ranges::any_of(cases, [](const CaseRecord& record) {
    return std::ranges::any_of(record.plans,
                               [](const PlanRecord& plan) { return !plan.need.host.empty(); });
  });
}

std::string value_of(const CaseRecord& record, const std::string& key) {
  const auto found = std::ranges::find(record.swept, key, &SweptKey::key);
  return found == record.swept.end() ? "" : found->value;
}

}  // namespace

std::string results_csv(const std::vector<CaseRecord>& cases) {
  const std::vector<std::string> swept = swept_keys(cases);
  const bool offloading = offloads(cases);
  std::string text;
  const auto add = [&](const std::string& cell) { text += cell + ","; };
  const auto end_line = [&] { text.back() = '\n'; };
  const ResultRow names;
  each_field(names, [&](const std::string& name, const auto&) {
    add(name);
    if (name != kLastName) return;
    for (const char* column : {"model", "cluster", "calibration"}) add(column);
    for (const std::string& key : swept) add(cell(key));
  });
  each_cell({}, [&](const std::string& name, const std::string&) { add(name); });
  if (offloading) add(kHostColumn);
  end_line();
  for (const CaseRecord& record : cases)
    for (const PlanRecord& plan : record.plans) {
      each_field(plan.row, [&](const std::string& name, const auto& field) {
        add(cell(field));
        if (name != kLastName) return;
        for (const std::string& text : {record.model, record.cluster, record.calibration})
          add(cell(text));
        for (const std::string& key : swept) add(cell(value_of(record, key)));
      });
      each_cell(plan.figures, [&](const std::string&, const std::string& text) { add(text); });
      if (offloading) add(cell(plan.need.host));
      end_line();
    }
  return text;
}

}  // namespace pfeife
