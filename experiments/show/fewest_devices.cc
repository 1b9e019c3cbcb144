#include <algorithm>

#include "experiments/show/texts.h"
#include "planner/ir/basics/grid.h"
#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

/// What a case has besides its devices, by key.
std::vector<SweptKey> others_of(const CaseRecord& record) {
  std::vector<SweptKey> others{
      {"model", record.model},
      {"cluster", record.cluster},
      {"microbatches", std::to_string(record.plans.front().row.microbatches)}};
  others.insert(others.end(), record.swept.begin(), record.swept.end());
  return others;
}

/// Cases that differ in their devices alone.
struct Group {
  std::vector<SweptKey> others;
  std::vector<const ResultRow*> rows;
};

/// "microbatches 4, training.precision fp32": what tells the group from another one.
std::string name_of(const Group& group, const std::vector<Group>& groups) {
  std::string name;
  for (const SweptKey& key : group.others) {
    const bool alike = std::ranges::all_of(groups, [&](const Group& other) {
      return std::ranges::find(other.others, key) != other.others.end();
    });
    if (!alike) name += (name.empty() ? "" : ", ") + key.key + " " + key.value;
  }
  return name.empty() ? "" : name + ": ";
}

/// The step of a case's plan, if it has one that fits.
std::optional<Nanoseconds> step_that_fits(const ResultRow& row, TraceSource engine) {
  return row.feasible ? time_of(row, engine) : std::nullopt;
}

/// "80.000 ms estimated, measured 90.000 ms (error -11.1 %)".
std::string step_text(const ResultRow& row, TraceSource engine) {
  return milliseconds_text(time_of(row, engine)) + " ms " + to_string(engine) +
         measured_text(row, engine);
}

std::string devices_text(std::size_t devices) {
  return std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::string why_not(const ResultRow& row, TraceSource engine, Nanoseconds limit) {
  const std::string who = devices_text(row.devices) + ": ";
  if (!step_that_fits(row, engine)) return who + "no plan fits";
  const std::string time = step_text(row, engine);
  if (row.lower_bound && *row.lower_bound >= limit && engine != TraceSource::Measured)
    return who + time + ", and no plan is below " + milliseconds_text(row.lower_bound) + " ms";
  return who + time + " is the best found; not proven that none is shorter";
}

std::string line_of(std::vector<const ResultRow*> rows, Nanoseconds limit) {
  std::ranges::sort(rows, {}, &ResultRow::devices);
  const TraceSource engine = compared_engine(rows);
  const auto found = std::ranges::find_if(rows, [&](const ResultRow* row) {
    return step_that_fits(*row, engine).value_or(limit) < limit;
  });
  std::string text =
      "none of " + devices_text(rows.back()->devices) + (rows.size() > 1 ? " and fewer" : "");
  if (found != rows.end())
    text = devices_text((*found)->devices) + ": " + schedule_name(**found) + ", " +
           step_text(**found, engine);
  if (found != rows.begin()) text += "; " + why_not(**std::prev(found), engine, limit);
  return text;
}

}  // namespace

std::string fewest_devices(const std::vector<CaseRecord>& cases, Nanoseconds limit,
                           std::size_t width) {
  std::vector<Group> groups;
  for (const CaseRecord& record : cases) {
    if (record.plans.empty()) continue;
    const std::vector<SweptKey> others = others_of(record);
    auto group = std::ranges::find(groups, others, &Group::others);
    if (group == groups.end()) group = groups.insert(groups.end(), {others, {}});
    group->rows.push_back(&record.plans.front().row);
  }
  if (groups.empty()) return "";
  std::string text =
      "fewest devices for a step below " + milliseconds_text(limit) + " ms, of those tried\n";
  for (const Group& group : groups)
    text += wrapped(name_of(group, groups) + line_of(group.rows, limit), width, "  ", "      ");
  return text;
}

}  // namespace pfeife
