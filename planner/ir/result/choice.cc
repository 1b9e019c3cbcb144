#include "planner/ir/result/choice.h"

#include <algorithm>

#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

/// "0-2 7"
std::string list_of(const std::vector<bool>& stages) {
  std::string list;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s]) continue;
    const std::size_t first = s;
    while (s + 1 < stages.size() && stages[s + 1]) ++s;
    list += (list.empty() ? "" : " ") + std::to_string(first);
    if (s > first) list += "-" + std::to_string(s);
  }
  return list;
}

}  // namespace

bool Activations::recomputes() const {
  return !blocks.empty() || std::ranges::find(stages, true) != stages.end();
}

bool Activations::offloads() const {
  return std::ranges::any_of(offload, [](double share) { return share > 0; });
}

/// "offload=0.5" of all stages, else one share a stage; of many stages "offload=1*78 0*2".
static std::string offload_text(const std::vector<double>& shares) {
  constexpr std::size_t kFew = 8;
  const bool alike = std::ranges::all_of(shares, [&](double s) { return s == shares.front(); });
  if (alike) return "offload=" + shortest(shares.front());
  std::string text;
  for (std::size_t s = 0, end = 0; s < shares.size(); s = end) {
    const auto same = [&](std::size_t t) { return t < shares.size() && shares[t] == shares[s]; };
    for (end = s + 1; shares.size() > kFew && same(end);) ++end;
    text += (s > 0 ? " " : "") + shortest(shares[s]);
    if (end - s > 1) text += "*" + std::to_string(end - s);
  }
  return "offload=" + text;
}

static std::string recompute_text(const Activations& activations) {
  if (!activations.recomputes()) return "";
  const std::vector<bool>& stages = activations.stages;
  const std::size_t blocks = activations.blocks.size();
  std::string what = std::to_string(blocks) + (blocks == 1 ? " block" : " blocks");
  if (blocks == 0)
    what = std::ranges::find(stages, false) == stages.end() ? "all" : list_of(stages);
  return "recompute=" + what + (activations.except_last ? " except last" : "");
}

std::string to_string(const Activations& activations) {
  const std::string again = recompute_text(activations);
  if (!activations.offloads()) return again;
  return again + (again.empty() ? "" : ", ") + offload_text(activations.offload);
}

std::string knobs(const Choice& choice) {
  std::string text;
  for (const std::string& knob :
       {knobs(choice.spec), to_string(choice.activations),
        std::string(choice.receives == Receives::AtNeed ? "receives=at_need" : "")})
    if (!knob.empty()) text += (text.empty() ? "" : ", ") + knob;
  return text;
}

std::string name_of(const Choice& choice) {
  return schedule_name(choice.spec.family, choice.spec.stages_per_rank, knobs(choice));
}

}  // namespace pfeife
