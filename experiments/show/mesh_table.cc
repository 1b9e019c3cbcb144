#include "experiments/show/mesh_table.h"

#include <algorithm>
#include <vector>

#include "experiments/show/known_errors.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/grid.h"
#include "planner/mesh/measured_pieces.h"

namespace pfeife {
namespace {

/// What tells the outcome from others of the same sizes: "mb 1 V=4 +rec attention zero 1".
std::string other_choices(const MeshRun& run) {
  std::string text = "mb " + std::to_string(run.microbatch_size);
  if (run.stages_per_rank > 1) text += " V=" + std::to_string(run.stages_per_rank);
  if (recomputed_text(run) != "none") text += " +rec " + recomputed_text(run);
  if (run.zero > 0) text += " zero " + std::to_string(run.zero);
  return text;
}

/// Which alternatives the question leaves out, and how they are fixed.
std::string not_searched(const MeshQuestion& question) {
  std::string text;
  const auto add = [&](const std::string& closed) {
    text += (text.empty() ? "not searched: " : "; ") + closed;
  };
  const auto other_than = [&](const std::string& name, const std::vector<std::int64_t>& sizes) {
    std::string listed;
    for (const std::int64_t size : sizes)
      listed += (listed.empty() ? "" : ", ") + std::to_string(size);
    if (!sizes.empty()) add(name + " other than " + listed);
  };
  const Architecture& model = question.run.architecture;
  other_than("tp", question.tp);
  if (divides_context(model))
    other_than("cp", question.cp);
  else
    add("cp (needs fused attention)");
  other_than("pp", question.pp);
  other_than("dp", question.dp);
  if (model.experts > 0) other_than("ep", question.ep);
  other_than("microbatch sizes", question.microbatch_size);
  for (const int zero : {0, 1, 2, 3})
    if (std::ranges::find(question.zero, zero) == question.zero.end())
      add("ZeRO " + std::to_string(zero));
  for (const Recompute again :
       {Recompute::None, Recompute::Attention, Recompute::Selective, Recompute::Full})
    if (std::ranges::find(question.recomputation, again) == question.recomputation.end())
      add("recompute " + to_string(again));
  other_than("stages a rank", question.stages_per_rank);
  add("schedules other than 1f1b and interleaved_1f1b");
  std::string order;
  for (const Axis axis : question.run.mesh.order)
    order += (order.empty() ? "" : ", ") + to_string(axis);
  add("orders of axes other than " + order);
  return text;
}

std::string how_sure(const MeshQuestion& question, const Network& network) {
  if (!network.measured_layers.empty())
    return "times of layers are measured; collectives, messages and the optimizer are modelled, "
           "and no published run says how far such steps are off";
  return to_string(error_of_meshes(network.device, question.run.architecture.experts > 0));
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

std::vector<const MeshOutcome*> best_of_meshes(const MeshAnswer& answer, std::size_t most) {
  std::vector<const MeshOutcome*> rows;
  for (const MeshOutcome& outcome : answer.priced) {
    const bool known = std::ranges::any_of(
        rows, [&](const MeshOutcome* row) { return row->run.mesh == outcome.run.mesh; });
    if (!known && rows.size() < most) rows.push_back(&outcome);
  }
  if (!rows.empty())  // the first is the choice: of equally fast ones the preferred
    std::ranges::stable_sort(
        rows.begin() + (answer.found() ? 1 : 0), rows.end(), {},
        [](const MeshOutcome* row) { return std::pair(!row->fits, row->step); });
  return rows;
}

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
                       const Network& network, const ScreenOptions& options) {
  constexpr std::size_t kShown = 6;
  const std::vector<const MeshOutcome*> outcomes = best_of_meshes(answer, kShown);
  const auto any_shown = [&](const auto& is) { return std::ranges::any_of(outcomes, is); };
  const bool contexts =
      any_shown([](const MeshOutcome* row) { return row->run.mesh.size(Axis::Context) > 1; });
  const bool experts = any_shown([](const MeshOutcome* row) { return row->run.mesh.experts > 1; });
  const bool lacks = any_shown([](const MeshOutcome* row) { return !row->fits; });
  std::vector<Axis> axes{Axis::Tensor};
  if (contexts) axes.push_back(Axis::Context);
  axes.insert(axes.end(), {Axis::Pipeline, Axis::Data});
  std::vector<GridColumn> columns;
  for (const Axis axis : axes) columns.push_back({to_string(axis)});
  if (experts) columns.push_back({"ep"});
  columns.push_back({"with", false});
  for (const char* head : {"step ms", "tokens/s", "MFU", "reserved GiB"}) columns.push_back({head});
  std::vector<GridRow> rows;
  std::string lost;
  for (const MeshOutcome* row : outcomes) {
    const Mesh& mesh = row->run.mesh;
    const bool chosen = row == outcomes.front() && answer.found();
    GridRow cells{.look = !row->fits ? Look::DoesNotFit : chosen ? Look::Chosen : Look::Plain};
    for (const Axis axis : axes) cells.cells.push_back({std::to_string(mesh.size(axis))});
    if (experts) cells.cells.push_back({std::to_string(mesh.experts)});
    cells.cells.push_back({other_choices(row->run) + (chosen ? " *" : "")});
    cells.cells.push_back({fixed(milliseconds(row->step), milliseconds(row->step) < 100 ? 1 : 0)});
    cells.cells.push_back({fixed(tokens_per_second(*row), 0)});
    cells.cells.push_back({fixed(100 * model_flops_utilization(*row, network), 0) + " %"});
    cells.cells.push_back({row->fits ? fixed(gib(row->reserved), 1)
                                     : "+" + fixed(gib(row->reserved - row->limit), 1) + " !"});
    rows.push_back(std::move(cells));
    if (!chosen && row->fits)
      lost += wrapped(mesh_text(row->run) + ": " + why_not(*row, answer.priced.front()),
                      options.width, "  ", "      ");
  }
  const std::string question_text =
      std::to_string(question.devices) + (question.devices == 1 ? " device, " : " devices, ") +
      std::to_string(question.run.global_batch) + " sequences of " +
      std::to_string(question.run.architecture.sequence) + " tokens a step; estimated" +
      (outcomes.empty() ? "" : ", limit " + fixed(gib(outcomes.front()->limit), 1) + " GiB");
  std::string legend = "each mesh with its best choices, the fastest first";
  if (lacks) legend += "; then what does not fit, ! GiB over the limit";
  legend += "; * chosen, mb samples a microbatch";
  if (any_shown([](const auto* row) { return recomputed_text(row->run) != "none"; }))
    legend += ", +rec recomputes";
  legend += "; reserved by PyTorch's allocator, by a factor";
  std::string counts = std::to_string(answer.candidates) +
                       " candidates: " + std::to_string(answer.priced.size()) + " priced, " +
                       std::to_string(answer.ruled_out) + " ruled out by their bounds, " +
                       std::to_string(answer.without_memory) +
                       " have no room for parameters, gradients and optimizer";
  if (answer.without_times > 0)
    counts += "; " + std::to_string(answer.without_times) +
              " more left out without measured times: " + answer.missing_times;
  if (answer.bound > Nanoseconds{0})
    counts += "; of the meshes and schedules asked for, none is below " +
              fixed(milliseconds(answer.bound), 1) +
              " ms, but where collectives are hidden (bound, not certified)";
  const std::size_t width = options.width;
  std::string text = wrapped(question_text, width);
  if (!outcomes.empty())
    text += "\n" + grid_text(columns, rows, options.colour) + "\n" + wrapped(legend, width);
  if (answer.found()) {
    text += "\n" + wrapped(step_parts(answer.priced.front()), width);
    const MeshRun& run = answer.priced.front().run;
    if (!network.device.measured_products.rows.empty())
      text += wrapped(coverage_text(mesh_products(run, network)), width);
    if (!network.measured_layers.empty())
      text += wrapped(coverage_text(run, network.measured_layers), width);
  }
  if (answer.residual)
    text += wrapped("measured peak " + fixed(gib(question.measured_peak->bytes), 2) +
                        " GiB, by the formula " + fixed(gib(answer.residual->formula), 2) +
                        " GiB: activations are taken " +
                        fixed(answer.residual->activation_factor, 3) + " times the formula's",
                    width);
  return text + (lost.empty() ? "" : "\nwhy not\n" + lost) + "\n" +
         wrapped("how sure: " + how_sure(question, network), width, "", "    ") +
         wrapped(counts, width) + mesh_limits(question, width);
}

std::string mesh_limits(const MeshQuestion& question, std::size_t width) {
  std::string text = wrapped(not_searched(question), width, "", "    ");
  for (const std::string& sentence : question.run.architecture.left_out)
    text += wrapped(sentence, width, "", "    ");
  return text;
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
            std::to_string(run.stages_per_rank) + "," + recomputed_text(run) + "," +
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
