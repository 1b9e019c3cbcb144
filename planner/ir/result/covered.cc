#include "planner/ir/result/covered.h"

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"

namespace pfeife {
namespace {

template <class Values>
std::string joined(const Values& values, const char* between) {
  std::string text;
  for (const auto& value : values) text += stream_all(text.empty() ? "" : between, value);
  return text;
}

std::string counted(std::size_t number, const char* what) {
  return stream_all(number, ' ', what, number == 1 ? "" : "s");
}

std::set<std::string> families_of(const std::set<ScheduleSpec>& schedules) {
  std::set<std::string> families;
  for (const ScheduleSpec& spec : schedules) families.insert(spec.family);
  return families;
}

std::string every_order_of(const std::set<ScheduleSpec>& schedules) {
  return "every action order of " + joined(families_of(schedules), " and ") + "'s placements";
}

std::string recomputation_text(const Covered& covered) {
  std::string text;
  const Recompute recompute = covered.bound.recompute;
  if (recompute == Recompute::Full) text += ", every stage recomputed";
  if (recompute == Recompute::Choose) text += ", any choice of recomputed stages";
  if (recompute == Recompute::Blocks) text += ", any choice of recomputed blocks";
  if (covered.except_last) text += ", the last microbatch kept";
  if (recompute == Recompute::Blocks || covered.except_last) text += " (without a certificate)";
  return text;
}

std::string cuts_text(const Covered& covered) {
  const Bound& bound = covered.bound;
  std::string text =
      stream_all(bound.given_cuts ? "the given" : "all", " cuts of the ", covered.layer_order,
                 " order of ", counted(covered.layers, "layer"));
  if (bound.least_share > 0)
    text += stream_all(" with at least ", bound.least_share * 100, " % of the mean load a stage");
  if (bound.linked) text += ", each stage linked to the next by values and gradients";
  return text;
}

std::string text_of(const Covered& covered) {
  std::string text = cuts_text(covered);
  if (covered.listed > 0)
    text += ", " + counted(covered.listed, "listed schedule") + " in their placements";
  text += ", within the memory limits whenever messages are received" + recomputation_text(covered);
  if (!covered.any_order.empty()) text += ", and " + every_order_of(covered.any_order);
  if (!covered.left_out.empty())
    text += stream_all("; not ", joined(families_of(covered.left_out), " and "),
                       ", whose orders are built for the costs: no action order of its placements "
                       "is below ",
                       to_string(rounded_down(covered.left_out_bound, 4)));
  if (covered.offload) text += ", whatever they offload";
  if (covered.hides_collectives)
    text += ", which hide collectives behind compute or compute behind them";
  return text;
}

}  // namespace

std::string class_name(const std::set<ScheduleSpec>& schedules) {
  constexpr std::size_t kMostNamed = 3;
  const std::set<std::string> families = families_of(schedules);
  if (families.size() > kMostNamed) return std::to_string(families.size()) + " families";
  return joined(families, " and ");
}

std::string to_string(const std::vector<Covered>& covered) {
  std::string text;
  for (const Covered& part : covered) text += (text.empty() ? "" : "; and ") + text_of(part);
  return text;
}

std::string left_out_text(const Covered& covered) {
  if (covered.left_out.empty()) return "";
  return every_order_of(covered.left_out) + ", " + cuts_text(covered) + "; not " +
         counted(covered.listed, "listed schedule") + ", whose bound is " +
         to_string(rounded_down(covered.bound.time, 4));
}

std::string to_string(const Uncertified& uncertified) {
  std::vector<std::string> parts;
  if (!uncertified.any_order.empty())
    parts.push_back(every_order_of(uncertified.any_order) +
                    (uncertified.in_turn ? ", microbatches in turn (all were tried)" : ""));
  if (uncertified.microbatch_sizes.size() > 1)
    parts.push_back("the other microbatch sizes of the global batch: " +
                    joined(uncertified.microbatch_sizes, ", "));
  if (uncertified.layer_orders.size() > 1)
    parts.push_back("the other orders of the layers: " + joined(uncertified.layer_orders, ", "));
  if (uncertified.device_orders) parts.push_back("every order of the devices");
  if (uncertified.without_recomputation)
    parts.push_back("of some of these only plans that recompute no stage");
  return joined(parts, "; ");
}

}  // namespace pfeife
