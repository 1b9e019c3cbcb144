#include "planner/ir/judge/validate.h"

#include "planner/schedule_tool/verbs.h"

namespace pfeife::tool {

std::string violations_text(const Schedule& schedule, const Semantics& semantics, Mode mode) {
  return violations_text(schedule, requirements_of(schedule, has_transfers(schedule), mode),
                         semantics);
}

std::string violations_text(const Schedule& schedule, const Requirements& required,
                            const Semantics& semantics) {
  const auto found = validate(schedule, required, semantics);
  if (found.empty()) return "";
  std::string text = marked_grid(schedule, found.front());
  for (std::size_t i = 1; i < found.size(); ++i)
    text += "rank " + to_string(found[i].rank) + ", position " + std::to_string(found[i].position) +
            ": " + found[i].message + "\n";
  return text;
}

}  // namespace pfeife::tool
