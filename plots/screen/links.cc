#include "plots/screen/links.h"

#include <algorithm>

#include "planner/ir/basics/decimals.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

constexpr double kWorthNaming = 0.01;  ///< of the step
constexpr std::size_t kMostLinks = 4;

double part(Nanoseconds time, Nanoseconds whole) {
  return static_cast<double>(time.count()) /
         static_cast<double>(std::max<std::int64_t>(1, whole.count()));
}

std::string ms(Nanoseconds time) { return milliseconds_text(time) + " ms"; }

/// "612.3 ms (-13.5 %)".
std::string compared(Nanoseconds time, Nanoseconds now) {
  const double change = 100 * (part(time, now) - 1);
  return ms(time) + " (" + (change > 0 ? "+" : "") + fixed(change, 1) + " %)";
}

std::string loads_sentence(const LinksRecord& links) {
  std::string text;
  for (std::size_t i = 0; i < std::min(links.links.size(), kMostLinks); ++i) {
    const LinkUse& use = links.links[i];
    text += (i > 0 ? "; " : "") + use.link + ": " + fixed(100 * use.mean_load, 1) + " % of " +
            fixed(use.capacity / 1e9, 2) + " GB/s";
    if (part(use.slowed, links.faster.now) >= kWorthNaming)
      text += ", slows transfers by " + ms(use.slowed) + " in all";
  }
  return text.empty() ? "" : "fullest links over the step: " + text;
}

std::string slowed_sentence(const LinksRecord& links) {
  std::string text;
  for (std::size_t i = 0; i < std::min(links.slowed.size(), kMostLinks); ++i) {
    const SlowedMessages& slowed = links.slowed[i];
    if (part(slowed.longest - slowed.alone, links.faster.now) < kWorthNaming) continue;
    text += (text.empty() ? "" : "; ") + std::to_string(slowed.from) + " to " +
            std::to_string(slowed.to) + ": " + ms(slowed.mean) + ", at most " + ms(slowed.longest) +
            ", alone " + ms(slowed.alone);
  }
  return text.empty() ? "" : "messages between stages that wait for links most, mean: " + text;
}

}  // namespace

std::string sharing_sentence(const LinksRecord& links) {
  const FasterLinks& faster = links.faster;
  if (part(faster.now - faster.unshared, faster.now) < kWorthNaming) return "";
  return "shared links cost " + ms(faster.now - faster.unshared) +
         ": if every transfer had them alone the step would take " +
         compared(faster.unshared, faster.now);
}

std::string faster_network_sentence(const LinksRecord& links) {
  const FasterLinks& faster = links.faster;
  if (part(faster.now - std::min(faster.twice, faster.instant), faster.now) < kWorthNaming)
    return "";
  return "a faster network would help: with links twice as fast the step would take " +
         compared(faster.twice, faster.now) + ", with messages that take their latency alone " +
         compared(faster.instant, faster.now);
}

std::vector<std::string> links_sentences(const LinksRecord& links) {
  std::vector<std::string> sentences;
  for (const std::string& sentence : {sharing_sentence(links), loads_sentence(links),
                                      slowed_sentence(links), faster_network_sentence(links)})
    if (!sentence.empty()) sentences.push_back(sentence);
  return sentences;
}

}  // namespace pfeife
