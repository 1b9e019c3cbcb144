#include "planner/ir/result/answer.h"

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

std::string covered_text(const Answer& answer) {
  if (!answer.bound) return "";
  const std::string others = to_string(answer.uncertified);
  return to_string(answer.covered) +
         (others.empty() ? "" : "; besides, without a certificate, " + others);
}

std::optional<Bound> plan_bound(const Answer& answer) {
  std::optional<Bound> bound = answer.bound;
  if (bound) bound->uncertified = to_string(answer.uncertified);
  return bound;
}

}  // namespace pfeife
