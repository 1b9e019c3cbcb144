#include "planner/ir/request/framework.h"

#include <algorithm>

namespace pfeife {

std::span<const Framework> frameworks() {
  using enum Recompute;
  static const std::vector<Framework> table{
      {.name = "torch", .title = "torch.distributed.pipelining", .between_modules = false},
      {.name = "megatron",
       .title = "Megatron-LM",
       .families = {"1f1b", "interleaved_1f1b"},
       .recompute = {None, Full, Blocks, Attention},
       .equal_blocks = true,
       .zero = {0, 1, 3}},
      {.name = "torchtitan", .title = "torchtitan", .recompute = {None, Full}},
      {.name = "automodel", .title = "NeMo AutoModel", .recompute = {None, Full}},
      {.name = "deepspeed",
       .title = "DeepSpeed",
       .families = {"1f1b"},
       .recompute = {None, Full},
       .zero = {0, 1},
       .divides_contexts_and_experts = false,
       .divides_tensors = false}};
  return table;
}

const Framework* framework(const std::string& name) {
  const auto found = std::ranges::find(frameworks(), name, &Framework::name);
  return found == frameworks().end() ? nullptr : &*found;
}

}  // namespace pfeife
