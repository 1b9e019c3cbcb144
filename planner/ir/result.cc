#include "planner/ir/result.h"

namespace pfeife {

std::string outcome_text(const TriedChange& tried) {
  if (!tried.estimate) return "does not help: " + tried.reason;
  std::string text = tried.schedule + ", " + to_string(*tried.estimate) + " estimated";
  if (tried.peak_memory) text += ", peak memory " + to_string(*tried.peak_memory);
  return text;
}

}  // namespace pfeife
