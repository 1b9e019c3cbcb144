#include "planner/inputs/profiled_stage.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pfeife {
namespace {

using PassTime = Nanoseconds NodeProfile::*;

Nanoseconds sum_of(const Profile& profile, PassTime pass) {
  Nanoseconds sum{0};
  for (const NodeProfile& node : profile.nodes) sum += node.*pass;
  return sum;
}

/// Scales the pass to `wanted` in all, to the nanosecond.
void scale(Profile& profile, PassTime pass, Nanoseconds wanted) {
  const Nanoseconds sum = sum_of(profile, pass);
  if (sum == Nanoseconds{0}) {
    if (!profile.nodes.empty()) profile.nodes.back().*pass = wanted;
    return;
  }
  const double ratio = static_cast<double>(wanted.count()) / static_cast<double>(sum.count());
  Nanoseconds before{0}, scaled_before{0};  // of the nodes before
  for (NodeProfile& node : profile.nodes) {
    before += node.*pass;
    const Nanoseconds scaled{std::llround(static_cast<double>(before.count()) * ratio)};
    node.*pass = scaled - scaled_before;
    scaled_before = scaled;
  }
}

}  // namespace

Profile without_stage(Profile measured) {
  if (!measured.stage_overheads) return measured;
  const Nanoseconds each = each_action(*measured.stage_overheads);
  Nanoseconds left{0};  // to be taken
  for (const auto& [pass, more] : std::array{
           std::pair{&NodeProfile::forward, each}, std::pair{&NodeProfile::backward_input, each},
           std::pair{&NodeProfile::backward_weight, Nanoseconds{0}}}) {
    left += more;
    const Nanoseconds sum = sum_of(measured, pass), taken = std::min(left, sum);
    if (taken > Nanoseconds{0}) scale(measured, pass, sum - taken);
    left -= taken;
  }
  return measured;
}

Profile with_stage(Profile nodes_alone) {
  if (!nodes_alone.stage_overheads) return nodes_alone;
  const Nanoseconds each = each_action(*nodes_alone.stage_overheads);
  for (const PassTime pass : {&NodeProfile::forward, &NodeProfile::backward_input})
    scale(nodes_alone, pass, sum_of(nodes_alone, pass) + each);
  return nodes_alone;
}

}  // namespace pfeife
