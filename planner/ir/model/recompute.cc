#include "planner/ir/model/recompute.h"

namespace pfeife {

std::string to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::None:
      return "none";
    case Recompute::Full:
      return "full";
    case Recompute::Choose:
      return "choose";
    case Recompute::Blocks:
      return "blocks";
    case Recompute::Attention:
      return "attention";
    case Recompute::IfNeeded:
      return "if_needed";
    case Recompute::Selective:
      return "selective";
  }
  return "";
}

std::string to_string(Module module) {
  switch (module) {
    case Module::Norm:
      return "layernorm";
    case Module::ExpertActivation:
      return "moe_act";
    case Module::LatentUp:
      return "mla_up_proj";
    case Module::CoreAttention:
      return "core_attn";
    case Module::SharedExperts:
      return "shared_experts";
    case Module::FeedForward:
      return "mlp";
    case Module::Experts:
      return "moe";
  }
  return "";
}

const std::vector<Module>& all_modules() {
  static const std::vector<Module> modules = {
      Module::Norm,          Module::ExpertActivation, Module::LatentUp, Module::CoreAttention,
      Module::SharedExperts, Module::FeedForward,      Module::Experts};
  return modules;
}

bool is_discarded(Module module) {
  return module == Module::Norm || module == Module::ExpertActivation || module == Module::LatentUp;
}

}  // namespace pfeife
