#include "planner/ir/result/answer.h"

#include "planner/ir/basics/decimals.h"

namespace pfeife {

std::string to_string(const Unfinished& unfinished) {
  switch (unfinished.what) {
    case Unfinished::What::OpenChoices:
      return "unfinished: " + std::to_string(unfinished.left) +
             " of the choices that are open may be faster, but were searched with little effort "
             "alone";
    case Unfinished::What::SharedLinks:
      return "unfinished: links bind, and the budget ended before all changes of the best plans "
             "were simulated; a larger plan.iterations goes on";
  }
  return "";
}

double cost_of_blocks(const CutPlaces& places) {
  if (!places.blocks || !places.anywhere) return 0;
  return static_cast<double>(places.blocks->count()) /
             static_cast<double>(places.anywhere->count()) -
         1;
}

std::string to_string(const CutPlaces& places) {
  const std::string longer = fixed(100 * cost_of_blocks(places), 1) + " % longer";
  const std::string engine = places.simulated ? "simulated" : "estimated";
  if (places.between_blocks)
    return cost_of_blocks(places) < 0.0005
               ? "cuts lie between blocks; no plan with others is known to be faster"
               : "cuts lie between blocks: " + longer + " than with others, " + engine;
  if (!places.blocks) return "cuts lie inside blocks: between them no plan was found";
  return "cuts lie inside blocks: between them the step is " + longer + ", " + engine +
         "; plan.cuts_at: blocks takes that";
}

std::string covered_text(const Answer& answer) {
  if (!answer.bound) return "";
  const std::string others = to_string(answer.uncertified);
  return to_string(answer.covered) +
         (others.empty() ? "" : "; besides, without a certificate, " + others);
}

std::string left_out_text(const Answer& answer) {
  std::string text;
  for (const Covered& covered : answer.covered) text += left_out_text(covered);
  return text;
}

std::optional<Bound> plan_bound(const Answer& answer) {
  std::optional<Bound> bound = answer.bound;
  if (bound) bound->uncertified = to_string(answer.uncertified);
  return bound;
}

}  // namespace pfeife
