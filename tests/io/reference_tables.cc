#include "tests/io/reference_tables.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/experiment/experiment_case.h"
#include "planner/io/experiment/parallel_config.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/plan/plan_file.h"
#include "planner/ir/request/check.h"
#include "planner/ir/result/not_executed.h"

namespace pfeife {
namespace {

constexpr std::string_view kBegin = "<!-- table ", kBeginEnds = " -->\n", kEnd = "<!-- end -->";

std::vector<FieldRow> joined(std::vector<FieldRow> first, const std::vector<FieldRow>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The rows but those of these keys.
std::vector<FieldRow> without(std::vector<FieldRow> rows, const std::vector<std::string>& keys) {
  std::erase_if(rows, [&](const FieldRow& row) { return std::ranges::count(keys, row.key) > 0; });
  return rows;
}

/// Keys of several sections that are about microbatches, which have a page of their own.
std::vector<FieldRow> microbatch_rows() {
  const ListContext none;
  return joined(
      joined(training_fields(none).only({"microbatch_costs", "lengths"}).rows("training."),
             plan_fields(none).only({"microbatch_order"}).rows("plan.")),
      joined(what_if_fields().rows("what_if."), slow_rank_fields().rows("what_if.slow.")));
}

/// Neighbours with one reason are a row. What plan.head excludes has a page of its own.
std::string combinations_table(bool of_head) {
  std::string text = "| key | not beside | why, and what to do |\n|---|---|---|\n";
  std::vector<RefusedCombination> all;
  std::ranges::copy_if(refused_combinations(), std::back_inserter(all),
                       [&](const RefusedCombination& row) {
                         return (std::string_view(row.key) == "plan.head") == of_head;
                       });
  for (std::size_t i = 0; i < all.size();) {
    std::string keys;
    const std::size_t first = i;
    const auto is_same = [&](const RefusedCombination& next) {
      return std::string_view(next.beside) == all[first].beside &&
             std::string_view(next.reason) == all[first].reason;
    };
    for (; i < all.size() && is_same(all[i]); ++i)
      keys += (keys.empty() ? "`" : ", `") + std::string(all[i].key) +
              (*all[i].value ? std::string(": ") + all[i].value : "") + "`";
    text += "| " + keys + " | " + all[first].beside + " | " + all[first].reason + " |\n";
  }
  return text;
}

std::string not_executed_table() {
  std::string text = "| where | a plan with | why, and what to do |\n|---|---|---|\n";
  for (const NotExecuted& row : not_executed())
    text += std::string("| ") + row.where + " | " + row.what + " | " + row.reason + " |\n";
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> reference_tables() {
  const MeshQuestion mesh = usual_mesh();
  const ListContext none;
  const std::pair<std::string, std::vector<FieldRow>> tables[] = {
      {"experiment", experiment_keys().rows("")},
      {"model", model_fields(none).rows("model.")},
      {"training", without(training_fields().rows("training."),
                           {"training.microbatch_costs", "training.lengths"})},
      {"microbatches", microbatch_rows()},
      {"cases", case_fields().rows("cases.")},
      {"plan", without(plan_fields(none).rows("plan."), {"plan.head", "plan.microbatch_order"})},
      {"head", plan_fields(none).only({"head"}).rows("plan.")},
      {"baselines", baseline_fields({}).rows("")},
      {"calibration", calibration_fields({}).rows("")},
      {"simulation", joined(simulation_fields().rows("simulation."), jitter_rows())},
      {"figures", figure_fields().rows("")},
      {"measurement", measurement_fields(none).rows("measurement.")},
      {"mesh", joined(mesh_training_fields().rows("training.", mesh),
                      mesh_fields().rows("parallel.", mesh))},
      {"mesh_model", mesh_model_rows()},
      {"replicas", replica_fields().rows("parallel.")},
      {"architecture", architecture_fields().rows("")},
      {"cluster", cluster_fields().rows("")},
      {"device_kind", device_kind_fields().rows("")},
      {"link", link_fields({}).rows("")},
      {"route", route_fields({}).rows("")}};
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, rows] : tables) texts.emplace_back(name, table_text(rows));
  texts.emplace_back("combinations", combinations_table(false));
  texts.emplace_back("head_combinations", combinations_table(true));
  texts.emplace_back("not_executed", not_executed_table());
  return texts;
}

std::string with_tables(const std::string& page,
                        const std::vector<std::pair<std::string, std::string>>& tables) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t begin; (begin = page.find(kBegin, at)) != std::string::npos;) {
    const std::size_t name_at = begin + kBegin.size();
    const std::size_t body = page.find(kBeginEnds, name_at);
    const std::size_t end = page.find(kEnd, name_at);
    if (body == std::string::npos || end == std::string::npos || end < body)
      throw ConfigError(
          {}, "a table begins that does not end with a line \"" + std::string(kEnd) + "\"");
    const std::string name = page.substr(name_at, body - name_at);
    const auto table = std::ranges::find(tables, name, [](const auto& of) { return of.first; });
    if (table == tables.end())
      throw ConfigError(
          {}, "there is no table \"" + name + "\"; tests/io/reference_tables.cc has the names");
    text += page.substr(at, body + kBeginEnds.size() - at) + table->second;
    at = end;
  }
  return text + page.substr(at);
}

}  // namespace pfeife
