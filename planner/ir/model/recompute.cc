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
  }
  return "";
}

}  // namespace pfeife
