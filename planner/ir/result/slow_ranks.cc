#include "planner/ir/result/slow_ranks.h"

#include <cstdio>

namespace pfeife {
namespace {

template <class... Values>
std::string formatted(const char* form, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

double ms(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

std::string slower_text(double factor) {
  return factor >= 1 ? formatted("%.4g %% slower", (factor - 1) * 100)
                     : formatted("%.4g %% faster", (1 - factor) * 100);
}

}  // namespace

std::vector<std::string> sentences(const SlowRanks& slow) {
  std::vector<std::string> found;
  const auto more = [&](Nanoseconds step) {
    return formatted("%+.1f %%", 100 * (ms(step) / ms(slow.now) - 1));
  };
  if (slow.rank) {
    const Nanoseconds step = slow.steps[slow.rank->index()];
    found.push_back("if rank " + to_string(*slow.rank) + " computes " + slower_text(slow.factor) +
                    ", the estimated step is " + formatted("%.6g", ms(step)) + " ms in place of " +
                    formatted("%.6g", ms(slow.now)) + " (" + more(step) + ")");
  }
  std::string steps, slack;
  for (std::size_t r = 0; r < slow.steps.size(); ++r) {
    steps += (r == 0 ? "" : ", ") + formatted("%.6g", ms(slow.steps[r])) + " (" +
             more(slow.steps[r]) + ")";
    slack +=
        (r == 0 ? "" : ", ") + (slow.slack[r] >= SlowRanks::kMostSlack
                                    ? formatted("over %.0f %%", (SlowRanks::kMostSlack - 1) * 100)
                                    : formatted("%.1f %%", (slow.slack[r] - 1) * 100));
  }
  found.push_back("estimated step if one rank computes " + slower_text(slow.factor) +
                  ", by rank from 0, ms: " + steps);
  found.push_back(
      "slack: how much slower each rank may compute before the step is 0.1 % longer, by rank: " +
      slack);
  return found;
}

}  // namespace pfeife
