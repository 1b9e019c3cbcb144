#include "planner/io/plan/stage_file.h"

#include <algorithm>
#include <sstream>

namespace pfeife {
namespace {

template <class... Cells>
void line(std::ostringstream& out, const Cells&... cells) {
  const char* before = "";
  ((out << before << cells, before = ","), ...);
  out << "\n";
}

void add_stages(std::ostringstream& out, const std::vector<StageCost>& stages,
                const Placement& placement) {
  out << "stage,rank,forward_ns,backward_input_ns,backward_weight_ns,optimizer_ns,"
         "parameter_bytes,gradient_bytes,optimizer_state_bytes,saved_bytes,weight_saved_bytes,"
         "temporary_forward_bytes,temporary_backward_bytes,temporary_input_bytes,"
         "temporary_weight_bytes,recomputed_bytes,forward_again_bytes\n";
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageCost& c = stages[s];
    line(out, s, placement.rank_of_stage[s].value, c.forward.count(), c.backward_input.count(),
         c.backward_weight.count(), c.optimizer.count(), c.parameters.value, c.gradients.value,
         c.optimizer_state.value, c.saved.value, c.weight_saved.value, c.temporary.forward.value,
         c.temporary.backward.value, c.temporary.input.value, c.temporary.weight.value,
         c.recomputed.value, c.forward_again.value);
  }
}

void add_values(std::ostringstream& out, const std::vector<StageValue>& values) {
  out << "\nvalue,from,to,bytes,gradient_bytes,saved_by_sender,saved_by_receiver\n";
  for (std::size_t v = 0; v < values.size(); ++v) {
    const StageValue& value = values[v];
    for (std::size_t i = 0; i < value.to.size(); ++i)
      line(out, v, value.from.value, value.to[i].value, value.bytes.value,
           value.gradient_bytes.value, value.saved_by_sender ? 1 : 0,
           value.saved_by_receiver[i] ? 1 : 0);
  }
}

void add_messages(std::ostringstream& out, const StageCosts& costs) {
  const bool any_empty = std::ranges::any_of(costs.pairs, [](const StagePair& pair) {
    return pair.has_gradient && pair.gradient_bytes == Bytes{0};
  });
  out << "\nfrom,to,message_bytes,gradient_bytes,forward_ns,backward_ns"
      << (any_empty ? ",has_gradient\n" : "\n");
  for (const StagePair& pair : costs.pairs) {
    out << pair.from.value << "," << pair.to.value << "," << pair.bytes.value << ","
        << pair.gradient_bytes.value << "," << pair.forward_time.count() << ","
        << pair.backward_time.count();
    if (any_empty) out << "," << (pair.has_gradient ? 1 : 0);
    out << "\n";
  }
}

void add_reductions(std::ostringstream& out, const StageCosts& costs) {
  out << "\nreduced_stages,reduced_bytes,reduction_ns\n";
  for (const StageReduction& reduction : costs.reductions) {
    const char* before = "";
    for (const StageId stage : reduction.stages) out << before << stage.value, before = " ";
    out << "," << reduction.bytes.value << "," << reduction.time.count() << "\n";
  }
  if (!costs.replicas.empty()) out << "\nstage,reduced_beside_ns,reduced_behind_ns\n";
  for (std::size_t s = 0; s < costs.replicas.size(); ++s)
    line(out, s, costs.replicas[s].beside.count(), costs.replicas[s].behind.count());
  if (costs.norm) out << "\nnorm_ns\n" << costs.norm->count() << "\n";
}

}  // namespace

std::string stages_text(const StageCosts& costs, const Placement& placement) {
  std::ostringstream out;
  add_stages(out, costs.stages, placement);
  add_values(out, costs.values);
  add_messages(out, costs);
  add_reductions(out, costs);
  if (costs.last.stages.empty()) return out.str();
  out << "\n";
  add_stages(out, costs.last.stages, placement);
  add_values(out, costs.last.values);
  return out.str();
}

}  // namespace pfeife
