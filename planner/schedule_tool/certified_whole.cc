// Proofs that look at the model as a whole: they hold wherever it is cut, in any order of the
// actions, whichever device runs which rank.
#include <algorithm>

#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

__extension__ using Big = __int128;
constexpr std::int64_t kMost = std::int64_t{1} << 53;

std::size_t kind(const Certificate& c, DeviceId device) {
  return c.cluster.kind_of_device[device.index()];
}

/// A microbatch passes the layers of a chain one after the other, and comes back over those whose
/// values get gradients, wherever they are.
Big longest_chain(const Certificate& c) {
  const auto fastest = [&](Nanoseconds LayerTimes::*work) {
    std::vector<Big> times;
    for (const Layer& layer : c.layers.layers) {
      Nanoseconds least = Nanoseconds::max();
      for (const DeviceId d : c.device_of_rank)
        least = std::min(least, layer.times[kind(c, d)].*work);
      times.emplace_back(least.count());
    }
    return times;
  };
  const auto forward = fastest(&LayerTimes::forward), input = fastest(&LayerTimes::backward_input);
  std::vector<Big> there = forward, back = input;  // [layer] to its end, from where it comes back
  Big longest = 0;
  for (std::size_t l = 0; l < forward.size(); ++l) {
    longest = std::max(longest, there[l] + back[l]);
    for (const LayerValue& value : c.layers.values)  // is made before it is read
      for (const LayerId reader : value.consumers) {
        if (value.producer.index() != l) break;
        const std::size_t r = reader.index();
        there[r] = std::max(there[r], there[l] + forward[r]);
        if (value.gradient_bytes > Bytes{0}) back[r] = std::max(back[r], back[l] + input[r]);
      }
  }
  return longest;
}

/// The slowest rank works at least as long as the weighted mean of all; a parameter's step is where
/// its first user is.
bool mean_work_takes(const Certificate& c, const CertifiedProof& proof) {
  const std::vector<Layer>& layers = c.layers.layers;
  const auto n = static_cast<Big>(proof.spec.microbatches);
  const auto ns = [](Nanoseconds time) { return Big{std::min(time.count(), kMost)}; };
  if (proof.shares.size() != proof.spec.ranks) return false;
  Big weights = 0, least = 0;
  for (const std::int64_t share : proof.shares) {
    if (share < 0 || n * share >= kMost) return false;
    weights += share;
  }
  std::vector<Big> piece(proof.shares.size(), 0);  // [rank] since the last place to cut
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t r = 0; r < piece.size(); ++r) {
      const std::size_t on = kind(c, c.device_of_rank[r]);
      const LayerTimes& t = layers[l].times[on];
      Big work = n * (ns(t.forward) + ns(t.backward_input) + ns(t.backward_weight));
      work += ns(t.optimizer);
      for (const LayerParameter& p : c.layers.parameters)
        if (!p.optimizer.empty() && !p.users.empty() && p.users.front().index() == l)
          work += ns(p.optimizer[on]);
      piece[r] += proof.shares[r] * work;
    }
    if (l + 1 < layers.size() && !layers[l].no_cut_after.empty()) continue;
    least += std::ranges::min(piece);
    std::ranges::fill(piece, 0);
  }
  return least > weights * (c.bound - 1);
}

}  // namespace

bool takes_the_bound(const Certificate& c, const CertifiedProof& proof) {
  return proof.whole == CertifiedProof::Whole::Chain  ? longest_chain(c) >= c.bound
         : proof.whole == CertifiedProof::Whole::Work ? mean_work_takes(c, proof)
                                                      : false;
}

}  // namespace pfeife::tool
