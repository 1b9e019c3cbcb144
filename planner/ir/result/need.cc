#include "planner/ir/result/need.h"

#include <algorithm>

namespace pfeife {

bool fits(const std::vector<Bytes>& held, const std::vector<Bytes>& limit) {
  return std::ranges::equal(held, limit, std::less_equal{});
}

double fullness(const std::vector<Bytes>& held, const std::vector<Bytes>& limit) {
  double most = 0;
  for (std::size_t r = 0; r < held.size(); ++r)
    most = std::max(most, static_cast<double>(held[r].value) /
                              static_cast<double>(std::max(limit[r], Bytes{1}).value));
  return most;
}

bool Need::fits() const { return !rank_shortage() && !host_shortage(); }

double Need::fullness() const { return pfeife::fullness(held(), limit); }

Bytes Need::excess(std::size_t rank) const {
  return rank < limit.size() ? std::max(Bytes{0}, held()[rank] - limit[rank]) : Bytes{0};
}

std::optional<Shortage> Need::rank_shortage() const {
  std::optional<Shortage> most;
  for (std::size_t r = 0; r < held().size(); ++r)
    if (excess(r) > (most ? most->lacking() : Bytes{0})) most = Shortage{r, held()[r], limit[r]};
  return most;
}

std::optional<Shortage> Need::host_shortage() const {
  if (!host_limit || host.empty()) return std::nullopt;
  const auto fullest = std::ranges::max_element(host);
  if (*fullest <= *host_limit) return std::nullopt;
  return Shortage{static_cast<std::size_t>(fullest - host.begin()), *fullest, *host_limit};
}

std::string host_text(const Shortage& host) {
  return "host " + std::to_string(host.number) + " needs " + to_string(host.needed) +
         " for what its devices offload and has " + to_string(host.available) +
         " (host_memory of the cluster), so it lacks " + to_string(host.lacking()) +
         ": raise host_memory in the cluster file if hosts have more, use more hosts "
         "(devices_per_node), or offload less";
}

std::string shortage_text(const Need& need) {
  std::string text;
  if (const auto rank = need.rank_shortage())
    text = "rank " + std::to_string(rank->number) + " needs " + to_string(rank->needed) +
           " and has " + to_string(rank->available);
  if (const auto host = need.host_shortage()) text += (text.empty() ? "" : "; ") + host_text(*host);
  return text;
}

}  // namespace pfeife
