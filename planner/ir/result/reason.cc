#include "planner/ir/result/reason.h"

#include "planner/ir/basics/round_down.h"

namespace pfeife {
namespace {

std::string slower_text(const Reason& reason) {
  const std::string by = reason.beside_least               ? " than the least estimate"
                         : reason.by == SelectBy::Simulate ? " simulated"
                         : reason.by == SelectBy::Estimate ? ""
                                                           : " by " + to_string(reason.by);
  if (!reason.slower) return "slower" + by;
  if (*reason.slower == Nanoseconds{0}) return reason.beside_least ? "as fast" : "as fast" + by;
  return to_string(*reason.slower) + " slower" + by;
}

std::string fuller_text(const Reason& reason) {
  const bool faster = reason.slower && *reason.slower < Nanoseconds{0};
  return (faster ? to_string(-*reason.slower) + " faster" : "as fast") + ", with " +
         (reason.lacking > Bytes{0} ? to_string(reason.lacking) + " more" : "less room");
}

std::string ruled_out_text(const Reason& reason, const std::optional<Nanoseconds>& bound,
                           bool several) {
  const std::string whose = several ? "their bounds" : "its bound";
  const std::string verb = several ? " are" : " is";
  if (reason.beside_least) return whose + verb + " not below the least estimate";
  return whose + (bound ? ", " + to_string(rounded_down(*bound, 4)) + "," : "") + verb +
         " not below the plan's time";
}

}  // namespace

std::string to_string(const Reason& reason, const std::optional<Nanoseconds>& bound, bool several) {
  switch (reason.why) {
    case Why::Chosen:
      return "";
    case Why::Slower:
      return slower_text(reason);
    case Why::Fuller:
      return fuller_text(reason);
    case Why::RuledOut:
      return ruled_out_text(reason, bound, several);
    case Why::LacksMemory:
      return "rank " + to_string(reason.rank) + " lacks " + to_string(reason.lacking) +
             (reason.may_yet_fit ? " in the best case found" : "");
    case Why::NothingFound:
      return "no cuts found that fit";
    case Why::NotTried:
    case Why::Impossible:
      break;
  }
  return reason.words;
}

}  // namespace pfeife
