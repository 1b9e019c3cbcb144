#include "experiments/show/mesh_table.h"

#include <algorithm>
#include <vector>

#include "experiments/show/known_errors.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"

namespace pfeife {
namespace {

/// What tells the outcome from others of the same sizes.
std::string other_choices(const MeshRun& run) {
  std::string text = "mb " + std::to_string(run.microbatch_size);
  if (run.stages_per_rank > 1) text += " V=" + std::to_string(run.stages_per_rank);
  if (run.recomputation != Recompute::None) text += " recompute " + to_string(run.recomputation);
  if (run.zero > 0) text += " zero " + std::to_string(run.zero);
  return text;
}

/// The best, and the best of each other mesh, as many as are shown.
std::vector<const MeshOutcome*> shown(const MeshAnswer& answer) {
  constexpr std::size_t kMost = 6;
  std::vector<const MeshOutcome*> rows;
  for (const MeshOutcome& outcome : answer.priced) {
    const bool known = std::ranges::any_of(
        rows, [&](const MeshOutcome* row) { return row->run.mesh == outcome.run.mesh; });
    if (!known && rows.size() < kMost) rows.push_back(&outcome);
  }
  return rows;
}

/// What the step is made of: parts add up to it, those that are nothing are left out.
std::string step_parts(const MeshOutcome& outcome) {
  std::string text;
  for (const auto& [time, name] : {std::pair{outcome.mean.compute, "compute"},
                                   {outcome.mean.collectives, "collectives"},
                                   {outcome.mean.exposed, "reductions that nothing hides"},
                                   {outcome.mean.optimizer, "optimizer"},
                                   {outcome.waiting, "waiting"}}) {
    if (time == Nanoseconds{0}) continue;
    text += (text.empty() ? "" : ", ") + fixed(milliseconds(time), 1) + " ms " + name + " (" +
            fixed(100 * seconds(time) / seconds(outcome.step), 1) + " %)";
  }
  return "the step *, a rank's mean: " + text;
}

}  // namespace

double tokens_per_second(const MeshOutcome& outcome) {
  const MeshRun& run = outcome.run;
  return static_cast<double>(run.global_batch * run.architecture.sequence) / seconds(outcome.step);
}

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value) / static_cast<double>(kGiB.value);
}

std::string mesh_text(const MeshRun& run) {
  std::string text;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    if (const std::int64_t size = run.mesh.size(axis); size > 1)
      text += to_string(axis) + " " + std::to_string(size) + ", ";
  if (run.mesh.experts > 1) text += "ep " + std::to_string(run.mesh.experts) + ", ";
  return text + other_choices(run);
}

double model_flops_utilization(const MeshOutcome& outcome, const Network& network) {
  const MeshRun& run = outcome.run;
  const auto peak = network.device.peak.find(run.type == DType::BFloat16 ? "bf16" : "fp16");
  if (peak == network.device.peak.end()) return 0;
  return model_flops_per_token(run.architecture).value * tokens_per_second(outcome) /
         (peak->second.value * static_cast<double>(run.mesh.devices()));
}

std::string mesh_table(const MeshQuestion& question, const MeshAnswer& answer,
                       const Network& network, std::size_t width) {
  const std::vector<const MeshOutcome*> outcomes = shown(answer);
  std::vector<Axis> axes;  // those along which some mesh is divided
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
    if (axis != Axis::Context || std::ranges::any_of(outcomes, [](const auto* row) {
          return row->run.mesh.size(Axis::Context) > 1;
        }))
      axes.push_back(axis);
  const bool experts =
      std::ranges::any_of(outcomes, [](const auto* row) { return row->run.mesh.experts > 1; });
  std::vector<std::vector<std::string>> rows(1);
  for (const Axis axis : axes) rows[0].push_back(to_string(axis));
  if (experts) rows[0].push_back("ep");
  const bool reduced = std::ranges::any_of(
      outcomes, [](const auto* row) { return row->mean.reduction > Nanoseconds{0}; });
  rows[0].emplace_back("step ms");
  if (reduced) rows[0].emplace_back("reduce ms");
  for (const char* name : {"tokens/s", "MFU", "GiB", "reserved", "with"})
    rows[0].emplace_back(name);
  std::string lost;
  for (const MeshOutcome* row : outcomes) {
    const Mesh& mesh = row->run.mesh;
    std::vector<std::string> cells;
    for (const Axis axis : axes) cells.push_back(std::to_string(mesh.size(axis)));
    if (experts) cells.push_back(std::to_string(mesh.experts));
    cells.push_back(fixed(milliseconds(row->step), 1));
    if (reduced)
      cells.push_back(fixed(milliseconds(row->mean.reduction), 1) + " (" +
                      fixed(milliseconds(row->mean.exposed), 1) + ")");
    cells.push_back(fixed(tokens_per_second(*row), 0));
    cells.push_back(fixed(100 * model_flops_utilization(*row, network), 0) + " %");
    cells.push_back(fixed(gib(row->peak), 1));
    cells.push_back(fixed(gib(row->reserved), 1));
    cells.push_back(other_choices(row->run));
    if (row == outcomes.front() && answer.found())
      cells.back() += " *";
    else
      lost += wrapped(to_string(mesh) + ": " + why_not(*row, answer.priced.front()), width, "  ",
                      "      ");
    rows.push_back(std::move(cells));
  }
  std::vector<std::size_t> sizes(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) sizes[c] = std::max(sizes[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c + 1 < row.size(); ++c)
      text += std::string(sizes[c] - row[c].size(), ' ') + row[c] + "  ";
    text += row.back() + "\n";
  }
  const std::string of =
      std::to_string(question.devices) + (question.devices == 1 ? " device, " : " devices, ") +
      std::to_string(question.run.global_batch) + " sequences of " +
      std::to_string(question.run.architecture.sequence) + " tokens a step; estimated; " +
      (reduced ? "reduce: gradients over replicas, a rank's mean (exposed); " : "") +
      "GiB: allocated on a device at most, and reserved by PyTorch's allocator (by a factor)" +
      (outcomes.empty() ? "" : ", of " + fixed(gib(outcomes.front()->limit), 1)) + "; * chosen";
  std::string counts = std::to_string(answer.candidates) +
                       " candidates: " + std::to_string(answer.priced.size()) + " priced, " +
                       std::to_string(answer.ruled_out) + " ruled out by their bounds, " +
                       std::to_string(answer.without_memory) +
                       " have no room for parameters, gradients and optimizer";
  if (answer.bound > Nanoseconds{0})
    counts += "; no mesh and schedule is below " + fixed(milliseconds(answer.bound), 1) +
              " ms, but where collectives are hidden (bound, not certified)";
  if (outcomes.empty()) text.clear();
  if (answer.found()) text += "\n" + wrapped(step_parts(answer.priced.front()), width);
  return text + (outcomes.empty() ? "" : "\n") + (lost.empty() ? "" : "why not\n" + lost + "\n") +
         wrapped(of, width) +
         wrapped("how sure: " + to_string(error_of_meshes(network.device)), width, "", "    ") +
         wrapped(counts, width);
}

std::string meshes_csv(const MeshAnswer& answer, const Network& network) {
  std::string text =
      "tp,cp,pp,dp,ep,microbatch_size,stages_per_rank,recompute,zero,fits,step_ms,bound_ms,"
      "peak_bytes,reserved_bytes,limit_bytes,tokens_per_s,model_flops_utilization,compute_ms,"
      "collectives_ms,reduction_ms,"
      "exposed_reduction_ms,optimizer_ms,waiting_ms\n";
  for (const MeshOutcome& outcome : answer.priced) {
    const MeshRun& run = outcome.run;
    for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data})
      text += std::to_string(run.mesh.size(axis)) + ",";
    text += std::to_string(run.mesh.experts) + "," + std::to_string(run.microbatch_size) + "," +
            std::to_string(run.stages_per_rank) + "," + to_string(run.recomputation) + "," +
            std::to_string(run.zero) + "," + (outcome.fits ? "1" : "0");
    for (const Nanoseconds time : {outcome.step, outcome.bound})
      text += "," + fixed(milliseconds(time), 6);
    text += "," + std::to_string(outcome.peak.value) + "," +
            std::to_string(outcome.reserved.value) + "," + std::to_string(outcome.limit.value) +
            "," + fixed(tokens_per_second(outcome), 3) + "," +
            fixed(model_flops_utilization(outcome, network), 6);
    for (const Nanoseconds time :
         {outcome.mean.compute, outcome.mean.collectives, outcome.mean.reduction,
          outcome.mean.exposed, outcome.mean.optimizer, outcome.waiting})
      text += "," + fixed(milliseconds(time), 6);
    text += "\n";
  }
  return text;
}

}  // namespace pfeife
