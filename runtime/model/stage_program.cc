#include "runtime/model/stage_program.h"

#include <algorithm>
#include <set>

#include "runtime/model/cast_cache.h"

namespace pfeife {
namespace {

/// A tensor of the type, contents undefined, for operators that read only that.
at::Tensor of_type(const TensorType& type, const Placing& placing) {
  return at::empty_strided(
      type.sizes, type.strides,
      at::TensorOptions().dtype(placed_type(type.dtype, placing)).device(placing.device));
}

/// In evaluation dropout does nothing and batch norm uses its statistics. False if the operator has
/// no such mode: what it draws belongs to the model.
bool switch_to_evaluation(Call& call) {
  const auto& formals = call.op.schema().arguments();
  bool switched = false;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const std::string& name = formals[i].name();
    if (name == "train" || name == "training") call.stack[i] = false, switched = true;
    if (name == "dropout_p") call.stack[i] = 0.0, switched = true;
  }
  // Dropout that does nothing returns its argument, which others may read after a write into it.
  if (call.op.schema().name() == "aten::dropout") {
    call.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::clone", "");
    call.stack = {{}, {}};
  }
  return switched;
}

/// Batch norm's count of batches.
bool counts_batches(const Graph& graph, const Node& node, const NodeEffects& effect) {
  if (node.op != "aten::add_" || effect.writes.empty()) return false;
  const Value& counter = graph.value(effect.writes[0]);
  return counter.role == ValueRole::Buffer && counter.source_name.ends_with("num_batches_tracked");
}

void find_casts(const Graph& graph, at::DeviceType device, StageProgram& program) {
  std::map<ParameterId, std::vector<std::pair<Instruction*, std::size_t>>> readers;
  for (Instruction& instruction : program) {
    if (!reads_narrow(instruction.call.op, device)) continue;
    for (const Call::Hole& hole : instruction.call.holes)
      if (const auto p = graph.value(hole.value).parameter;
          p && graph.parameters[p->index()].trainable)
        readers[*p].push_back({&instruction, hole.argument});
  }
  for (const auto& [parameter, of] : readers)
    for (const auto& [instruction, argument] : of)
      if (of.size() > 1) instruction->casts.push_back(argument);
}

/// `needed`: values that stay after the last node.
void find_last_uses(StageProgram& program, std::set<ValueId> needed) {
  for (auto at = program.rbegin(); at != program.rend(); ++at) {
    const auto use = [&](ValueId v) {
      if (needed.insert(v).second) at->last_uses.push_back(v);
    };
    for (const ValueId out : at->outputs) use(out);  // those never read go at once
    for (const auto& hole : at->call.holes) use(hole.value);
    for (const auto& hole : at->call.list_holes)
      for (const auto& v : hole.values)
        if (v) use(*v);
  }
}

}  // namespace

StageProgram compile_stage(const Graph& graph, const std::vector<NodeEffects>& effects,
                           const StageSlice& slice, std::span<const ValueId> received,
                           std::span<const ValueId> sent, const StageOptions& options) {
  StageProgram program;
  std::set<ValueId> here(slice.inputs.begin(), slice.inputs.end());
  here.insert(received.begin(), received.end());
  for (const NodeId n : slice.nodes) {
    const Node& node = graph.node(n);
    const NodeEffects& effect = effects[n.index()];
    const bool counter = counts_batches(graph, node, effect);
    if (!options.training && counter) continue;
    Instruction instruction{.call = compile_call(graph, node, options.placing),
                            .node = static_cast<std::uint64_t>(n.value),
                            .random = effect.random,
                            .returns_list = node.returns_list,
                            .deferred = {},
                            .batch_norm = {},
                            .casts = {},
                            .outputs = node.outputs,
                            .last_uses = {}};
    if (options.training && options.defer_batch_norm) {
      instruction.batch_norm = batch_norm_arguments(instruction.call);
      instruction.counts_batches = counter;
    }
    if (!options.training && switch_to_evaluation(instruction.call)) instruction.random = false;
    if (options.training && (options.split_backward || !options.plain_backward))
      instruction.deferred = deferred_kind(graph, node);
    if (effect.metadata_only) {  // what is not at hand is made up from its type
      auto& holes = instruction.call.holes;
      std::erase_if(holes, [&](const Call::Hole& hole) {
        if (here.contains(hole.value) || graph.value(hole.value).role != ValueRole::Intermediate)
          return false;
        instruction.call.stack[hole.argument] =
            of_type(graph.value(hole.value).type, options.placing);
        return true;
      });
    }
    here.insert(node.outputs.begin(), node.outputs.end());
    program.push_back(std::move(instruction));
  }
  if (options.autocast) find_casts(graph, options.placing.device.type(), program);
  std::set<ValueId> needed(sent.begin(), sent.end());
  needed.insert(slice.outputs.begin(), slice.outputs.end());
  find_last_uses(program, std::move(needed));
  return program;
}

namespace {

template <class Visit>
void each_operand(const Instruction& instruction, const Visit& visit) {
  for (const auto& hole : instruction.call.holes) visit(hole.value);
  for (const auto& hole : instruction.call.list_holes)
    for (const auto& v : hole.values)
      if (v) visit(*v);
}

ProgramBlock program_block(const Graph& graph, const StageProgram& program, std::size_t begin,
                           std::size_t end, const std::vector<ValueId>& needed) {
  std::set<ValueId> computed, inputs, outputs, buffers;
  for (std::size_t i = begin; i < end; ++i) {
    each_operand(program[i], [&](ValueId v) {
      if (graph.value(v).role == ValueRole::Intermediate && !computed.contains(v)) inputs.insert(v);
      if (graph.value(v).role == ValueRole::Buffer) buffers.insert(v);
    });
    computed.insert(program[i].outputs.begin(), program[i].outputs.end());
  }
  const auto read = [&](ValueId v) {
    if (computed.contains(v)) outputs.insert(v);
  };
  for (std::size_t i = end; i < program.size(); ++i) each_operand(program[i], read);
  for (const ValueId v : needed) read(v);
  return {begin,
          end,
          {inputs.begin(), inputs.end()},
          {outputs.begin(), outputs.end()},
          {buffers.begin(), buffers.end()}};
}

}  // namespace

std::vector<ProgramBlock> program_blocks(const Graph& graph, const StageProgram& program,
                                         std::span<const NodeRange> blocks,
                                         const std::vector<ValueId>& needed) {
  std::vector<ProgramBlock> found;
  for (const NodeRange& block : blocks) {
    const auto node = [](const Instruction& instruction) {
      return static_cast<std::int64_t>(instruction.node);
    };
    const auto begin = std::ranges::upper_bound(program, std::int64_t{block.before}, {}, node);
    const auto end = std::ranges::upper_bound(program, std::int64_t{block.last}, {}, node);
    if (begin < end)
      found.push_back(program_block(graph, program,
                                    static_cast<std::size_t>(begin - program.begin()),
                                    static_cast<std::size_t>(end - program.begin()), needed));
  }
  return found;
}

std::vector<c10::IValue> arguments(const Instruction& instruction,
                                   const std::vector<at::Tensor>& values) {
  std::vector<c10::IValue> stack = instruction.call.stack;
  for (const auto& hole : instruction.call.holes) stack[hole.argument] = values[hole.value.index()];
  for (const auto& hole : instruction.call.list_holes) {
    if (hole.optional) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& v : hole.values)
        list.push_back(v ? std::optional(values[v->index()]) : std::nullopt);
      stack[hole.argument] = std::move(list);
    } else {
      c10::List<at::Tensor> list;
      for (const auto& v : hole.values) list.push_back(values[v->index()]);
      stack[hole.argument] = std::move(list);
    }
  }
  return stack;
}

}  // namespace pfeife
