#include "planner/io/plan/stage_file.h"

#include <algorithm>
#include <sstream>

#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

template <class... Cells>
void line(std::ostringstream& out, const Cells&... cells) {
  const char* before = "";
  ((out << before << cells, before = ","), ...);
  out << "\n";
}

/// A column that is there where some stage has another figure than 0.
struct Column {
  const char* name;
  std::int64_t (*of)(const StageCost&);
};
constexpr Column kOptional[] = {
    {"forward_collectives_ns", [](const StageCost& c) { return c.forward_collectives.count(); }},
    {"backward_collectives_ns", [](const StageCost& c) { return c.backward_collectives.count(); }},
    {"offloaded_bytes", [](const StageCost& c) { return c.offloaded.value; }},
    {"offload_ns", [](const StageCost& c) { return c.offload.count(); }},
    {"reload_ns", [](const StageCost& c) { return c.reload.count(); }},
    {"unkept_forward_bytes", [](const StageCost& c) { return c.unkept_forward.value; }}};

/// `key_gradients`: of a slice; empty = of whole microbatches.
void add_stages(std::ostringstream& out, const std::vector<StageCost>& stages,
                const Placement& placement, const std::vector<Bytes>& key_gradients = {}) {
  std::vector<Column> optional;
  for (const Column& column : kOptional)
    if (std::ranges::any_of(stages, column.of)) optional.push_back(column);
  out << "stage,rank,forward_ns,backward_input_ns,backward_weight_ns,optimizer_ns,"
         "parameter_bytes,gradient_bytes,optimizer_state_bytes,saved_bytes,weight_saved_bytes,"
         "temporary_forward_bytes,temporary_backward_bytes,temporary_input_bytes,"
         "temporary_weight_bytes,recomputed_bytes,forward_again_bytes";
  for (const Column& column : optional) out << "," << column.name;
  out << (key_gradients.empty() ? "\n" : ",key_gradient_bytes\n");
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageCost& c = stages[s];
    out << s << "," << placement.rank_of_stage[s].value;
    for (const std::int64_t figure :
         {c.forward.count(), c.backward_input.count(), c.backward_weight.count(),
          c.optimizer.count(), c.parameters.value, c.gradients.value, c.optimizer_state.value,
          c.saved.value, c.weight_saved.value, c.temporary.forward.value,
          c.temporary.backward.value, c.temporary.input.value, c.temporary.weight.value,
          c.recomputed.value, c.forward_again.value})
      out << "," << figure;
    for (const Column& column : optional) out << "," << column.of(c);
    if (!key_gradients.empty()) out << "," << key_gradients[s].value;
    out << "\n";
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

void add_messages(std::ostringstream& out, const std::vector<StagePair>& pairs) {
  const bool any_empty = std::ranges::any_of(pairs, [](const StagePair& pair) {
    return pair.has_gradient && pair.gradient_bytes == Bytes{0};
  });
  out << "\nfrom,to,message_bytes,gradient_bytes,forward_ns,backward_ns"
      << (any_empty ? ",has_gradient\n" : "\n");
  for (const StagePair& pair : pairs) {
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

void add_pairs(std::ostringstream& out, const std::vector<StageCosts::SideBySide>& pairs) {
  if (!pairs.empty()) out << "\nforward_of,backward_of,with_backward_ns,with_input_ns\n";
  for (const StageCosts::SideBySide& pair : pairs)
    line(out, pair.forward.value, pair.backward.value, pair.with_backward.count(),
         pair.with_input.count());
}

/// What rules actions beside one another.
void add_rules(std::ostringstream& out, const StageCosts& costs) {
  if (offloads(costs)) out << "\none_copy_engine\n" << (costs.one_copy_engine ? 1 : 0) << "\n";
  if (costs.overlap_factor != 1)
    out << "\noverlap_factor\n" << shortest(costs.overlap_factor) << "\n";
  add_pairs(out, costs.side_by_side);
}

/// `title`: "slice\n0".
void add_part(std::ostringstream& out, const std::string& title, const StageCosts::Slice& slice,
              const Placement& placement) {
  out << "\n" << title << "\n\n";
  add_stages(out, slice.stages, placement, slice.key_gradients);
  add_values(out, slice.values);
  add_messages(out, slice.pairs);
}

}  // namespace

std::string stages_text(const StageCosts& costs, const Placement& placement) {
  std::ostringstream out;
  add_stages(out, costs.stages, placement);
  add_values(out, costs.values);
  add_messages(out, costs.pairs);
  add_reductions(out, costs);
  add_rules(out, costs);
  if (!costs.last.stages.empty()) {
    out << "\n";
    add_stages(out, costs.last.stages, placement);
    add_values(out, costs.last.values);
    add_pairs(out, costs.last.side_by_side);
  }
  for (std::size_t i = 0; i < costs.slices.size(); ++i)
    add_part(out, "slice\n" + std::to_string(i), costs.slices[i], placement);
  for (std::size_t i = 0; i < costs.kinds.size(); ++i) {
    std::string microbatches = "microbatches\n";
    for (std::size_t m = 0; m < costs.kind_of.size(); ++m)
      if (costs.kind_of[m] == i)
        microbatches += (microbatches.back() == '\n' ? "" : " ") + std::to_string(m);
    add_part(out, microbatches, costs.kinds[i], placement);
  }
  return out.str();
}

}  // namespace pfeife
