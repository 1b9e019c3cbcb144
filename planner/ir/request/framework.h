// Frameworks that train pipelines, and what each can run of a plan: what `plan.for` keeps to.
//   if (const Framework* known = framework("megatron")) std::puts(known->title.c_str());
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/ir/model/recompute.h"

namespace pfeife {

struct Framework {
  std::string name;   ///< the word of `plan.for`
  std::string title;  ///< as people write it
  /// Cuts lie between numbered modules (layers.3 and layers.4) alone; else between any two blocks.
  bool between_modules = true;
  std::vector<std::string> families = {};  ///< schedules that it runs; empty = every one
  std::vector<Recompute> recompute = {Recompute::None};  ///< what it can compute again
  bool equal_blocks = false;                 ///< recomputes equally many blocks of each stage
  std::vector<int> zero = {0, 3};            ///< ZeRO of replicas beside pipelines
  bool divides_contexts_and_experts = true;  ///< has cp and ep beside pipelines
  bool divides_tensors = true;               ///< has tp beside pipelines
};

std::span<const Framework> frameworks();
/// nullptr = there is none of that name.
const Framework* framework(const std::string& name);

}  // namespace pfeife
