#include "experiments/show/fits_table.h"

#include <algorithm>
#include <cmath>

#include "experiments/show/mesh_table.h"
#include "planner/io/files/csv_table.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/grid.h"
#include "planner/mesh/measured_pieces.h"

namespace pfeife {
namespace {

/// "1,104": whole, with commas.
std::string grouped(double value) {
  std::string text = fixed(value, 0);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

/// Three digits or all before the point: 0.42, 4.20, 42.0, 4,200.
std::string three_digits(double value) {
  return value >= 100 ? grouped(value) : fixed(value, value >= 10 ? 1 : 2);
}

/// What is missing where no mesh fits.
std::string lack_of(const MeshAnswer& answer, const MeshQuestion& question,
                    const Network& network) {
  MeshRun alone = question.run;
  alone.mesh.sizes = {1, 1, 1, 1};
  const Bytes states = undivided_state(alone, network);
  const Bytes each = reserved_limit(question, alone, network);
  const Bytes all{each.value * question.devices};
  if (reserved_by(alone, question.allocator, states) > all) {
    const double factor =
        static_cast<double>(reserved_by(alone, question.allocator, states).value) /
        static_cast<double>(each.value);
    return grouped(gib(states)) + " GiB of weights, gradients and optimizer state over " +
           grouped(gib(all)) + ": at least " + fixed(std::ceil(factor), 0) + " devices";
  }
  if (answer.priced.empty())
    return "no mesh divides the " + grouped(gib(states)) +
           " GiB of weights, gradients and optimizer state so that each device has room";
  const MeshOutcome& nearest = answer.priced.front();
  return "the smallest, " + mesh_text(nearest.run) + ", reserves " +
         fixed(gib(nearest.reserved), 1) + " GiB of " + fixed(gib(nearest.limit), 1);
}

/// Where the times of products or layers come from, a line each row.
std::string coverage_lines(const std::vector<FitRow>& rows, std::size_t width) {
  std::string text;
  for (const FitRow& row : rows)
    if (!row.coverage.empty())
      text += wrapped(row.cluster + ", " + std::to_string(row.devices) + ": " + row.coverage, width,
                      "", "    ");
  return text.empty() ? "" : "\n" + text;
}

/// Each kind of error once.
std::string errors_text(const std::vector<FitRow>& rows, std::size_t width) {
  std::string text;
  std::vector<std::string> shown;
  for (const FitRow& row : rows) {
    const std::string error = row.error ? to_string(*row.error) : "";
    if (error.empty() || std::ranges::find(shown, error) != shown.end()) continue;
    shown.push_back(error);
    text += wrapped("how sure: " + error, width, "", "    ");
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

FitRow fit_of_answer(const std::string& cluster, const MeshQuestion& question,
                     const MeshAnswer& answer, const Network& network) {
  FitRow row{.cluster = cluster, .devices = question.devices};
  if (!answer.found()) {
    row.lack = lack_of(answer, question, network);
    return row;
  }
  const MeshOutcome& best = answer.priced.front();
  row.step = best.step;
  row.rate = tokens_per_second(best);
  row.mfu = model_flops_utilization(best, network);
  row.allocated = best.peak, row.reserved = best.reserved, row.limit = best.limit;
  row.plan = mesh_text(best.run);
  if (!network.measured_layers.empty()) {
    row.coverage = coverage_text(best.run, network.measured_layers);
    return row;
  }
  row.error = error_of_meshes(network.device, question.run.architecture.experts > 0);
  if (!network.device.measured_products.rows.empty())
    row.coverage = coverage_text(mesh_products(best.run, network));
  return row;
}

FitRow fit_of_mesh(const std::string& cluster, const MeshQuestion& question, const Network& network,
                   std::size_t threads) try {
  if (question.devices > network.reach())
    return {.cluster = cluster,
            .devices = question.devices,
            .lack = "a host has " + std::to_string(network.reach()) +
                    ", and no link joins hosts (between_hosts)"};
  return fit_of_answer(cluster, question,
                       find_mesh(question, network, {.threads = threads, .progress = {}}), network);
} catch (const ConfigError& error) {
  return {.cluster = cluster, .devices = question.devices, .lack = error.what()};
}

std::string fits_csv(const std::vector<FitRow>& rows, const std::string& unit) {
  std::string text = "cluster,devices,fits,step_ms," + unit +
                     "_per_second,mfu,allocated_bytes,reserved_bytes,limit_bytes,with,lack\n";
  for (const FitRow& row : rows) {
    const bool fits = row.lack.empty();
    std::string known = ",,,,,";
    if (fits)
      known = fixed(milliseconds(row.step), 6) + "," + fixed(row.rate, 3) + "," +
              (row.mfu ? fixed(*row.mfu, 6) : "") + "," + std::to_string(row.allocated.value) +
              "," + std::to_string(row.reserved.value) + "," + std::to_string(row.limit.value);
    text += csv_cell(row.cluster) + "," + std::to_string(row.devices) + "," + (fits ? "1," : "0,") +
            known + "," + csv_cell(row.plan) + "," + csv_cell(row.lack) + "\n";
  }
  return text;
}

std::string fits_table(const std::vector<FitRow>& rows, const std::string& unit,
                       std::size_t width) {
  const bool priced =
      std::ranges::any_of(rows, [](const FitRow& row) { return row.price.has_value(); });
  std::vector<GridColumn> columns{{"cluster", false}, {"devices"}, {"step ms"}, {unit + "/s"}};
  columns.insert(columns.end(), {{"MFU"}, {"GiB"}, {"reserved"}, {"of"}, {"free"}});
  if (priced) columns.push_back({"1e9 " + unit});
  columns.push_back({"with", false});
  std::vector<GridRow> lines;
  std::string above, lacks;
  for (const FitRow& row : rows) {
    GridRow line;
    line.cells = {{row.cluster == above ? "" : row.cluster}, {std::to_string(row.devices)}};
    above = row.cluster;
    if (!row.lack.empty()) {
      line.look = Look::DoesNotFit;
      line.cells.push_back({"no"});
      lacks += wrapped(row.cluster + ", " + std::to_string(row.devices) + ": " + row.lack, width,
                       "", "  ");
      lines.push_back(std::move(line));
      continue;
    }
    const double free = 1 - gib(row.reserved) / gib(row.limit);
    line.cells.push_back({three_digits(milliseconds(row.step))});
    line.cells.push_back({three_digits(row.rate)});
    line.cells.push_back({row.mfu ? fixed(100 * *row.mfu, 0) + " %" : ""});
    line.cells.push_back({fixed(gib(row.allocated), 1)});
    line.cells.push_back({fixed(gib(row.reserved), 1)});
    line.cells.push_back({fixed(gib(row.limit), 1)});
    line.cells.push_back({fixed(100 * free, 0) + " %"});
    if (priced)
      line.cells.push_back({row.price ? three_digits(*row.price * static_cast<double>(row.devices) /
                                                     3600 * 1e9 / row.rate)
                                      : ""});
    line.cells.push_back({row.plan});
    lines.push_back(std::move(line));
  }
  return grid_text(columns, lines, false) + (lacks.empty() ? "" : "\nwhat is missing\n" + lacks) +
         coverage_lines(rows, width) + errors_text(rows, width);
}

}  // namespace pfeife
