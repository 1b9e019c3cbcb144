#include "experiments/fewest_devices.h"

#include <algorithm>
#include <map>

#include "experiments/table.h"

namespace pfeife {
namespace {

/// The name of a case without its devices: equal for cases that differ in those alone.
std::string others_of(const CaseRecord& record) {
  const std::string key = "devices=";
  std::string name = "," + record.name;
  if (const std::size_t at = name.find("," + key); at != std::string::npos)
    name.erase(at, name.find(',', at + 1) - at);
  CaseRecord named;
  named.name = name.empty() ? "" : name.substr(1);
  return heading(named);
}

/// Of the plan of a case that has one that fits.
std::optional<Nanoseconds> step_of(const ResultRow& row) {
  if (!row.feasible) return std::nullopt;
  return row.measure ? row.measure : row.simulate ? row.simulate : row.estimate;
}

std::string devices_text(std::size_t devices) {
  return std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::string why_not(const ResultRow& row, Nanoseconds limit) {
  const std::string who = devices_text(row.devices) + ": ";
  if (!step_of(row)) return who + "no plan fits";
  const std::string time = milliseconds_text(step_of(row)) + " ms";
  if (row.lower_bound && *row.lower_bound >= limit)
    return who + time + ", and no plan is below " + milliseconds_text(row.lower_bound) + " ms";
  return who + time + " is the best found; not proven that none is shorter";
}

std::string line_of(std::vector<const ResultRow*> rows, Nanoseconds limit) {
  std::ranges::sort(rows, {}, &ResultRow::devices);
  const auto found = std::ranges::find_if(
      rows, [&](const ResultRow* row) { return step_of(*row).value_or(limit) < limit; });
  std::string text =
      "none of " + devices_text(rows.back()->devices) + (rows.size() > 1 ? " and fewer" : "");
  if (found != rows.end())
    text = devices_text((*found)->devices) + ": " + milliseconds_text(step_of(**found)) + " ms, " +
           schedule_name(**found);
  if (found != rows.begin()) text += "; " + why_not(**std::prev(found), limit);
  return text;
}

}  // namespace

std::string fewest_devices(const std::vector<CaseRecord>& cases, Nanoseconds limit) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const ResultRow*>> groups;
  for (const CaseRecord& record : cases) {
    if (record.plans.empty()) continue;
    const std::string others = others_of(record);
    if (!groups.contains(others)) order.push_back(others);
    groups[others].push_back(&record.plans.front().row);
  }
  if (order.empty()) return "";
  std::string text =
      "fewest devices for a step below " + milliseconds_text(limit) + " ms, of those tried\n";
  for (const std::string& others : order)
    text += "  " + others + (others.empty() ? "" : ": ") + line_of(groups[others], limit) + "\n";
  return text;
}

}  // namespace pfeife
