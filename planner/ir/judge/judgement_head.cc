// An output layer that all ranks share: one share a rank, and the same order everywhere, because
// its collectives need all ranks.
#include <algorithm>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

class HeadJudge {
 public:
  HeadJudge(const Reading& reading, Findings& findings)
      : reading_(reading), findings_(findings), barriers_(reading.required.stages.head_barriers) {}

  void judge() {
    if (barriers_ == 0) return judge_unshared();
    if (const std::size_t stages = reading_.home.size(); stages != reading_.schedule.ranks())
      findings_.add({}, "ranks that share the output layer have one stage each, not " +
                            std::to_string(stages) + " on " +
                            std::to_string(reading_.schedule.ranks()));
    for (std::size_t s = 0; s < reading_.home.size(); ++s) {
      if (!reading_.home[s]) continue;
      judge_complete(s, "S", &Life::share);
      judge_complete(s, "T", &Life::rest);
      for (const Life& life : reading_.lives_of(s)) judge_life(life, s + 1 == reading_.home.size());
    }
    if (findings_.hangs()) return;
    judge_order("S", &Life::share);
    judge_order("T", &Life::rest);
  }

 private:
  using Part = std::optional<Place> Life::*;

  /// The last stage has the output layer.
  void judge_unshared() {
    for (const Life& life : reading_.lives)
      for (const auto& [place, word] : {std::pair{life.share, "S"}, {life.rest, "T"}})
        if (place)
          findings_.add(*place,
                        text(life, word) +
                            " is of an output layer that all ranks share; here the last stage has "
                            "it");
  }

  void judge_complete(std::size_t stage, const std::string& word, Part part) {
    std::vector<std::uint32_t> there;
    for (const Life& life : reading_.lives_of(stage))
      if (life.*part) there.push_back(life.microbatch);
    const std::string missing =
        ranges_missing(there, static_cast<std::uint32_t>(reading_.required.microbatches),
                       reading_.required.slices);
    if (!missing.empty())
      findings_.add_missing(reading_, *reading_.home[stage],
                            "stage " + std::to_string(stage) + " lacks " + word +
                                " of microbatch " + missing +
                                ": each rank computes a share of the output layer");
  }

  void judge_life(const Life& life, bool last) {
    after(life, life.share, life.rest, "T", "S");
    if (!last) return;
    const std::string backward = life.backward ? "B" : "I";
    after(life, life.forward, life.share, "S", "F");
    after(life, barriers_ == 1 ? life.share : life.rest, life.gradient(), backward,
          barriers_ == 1 ? "S" : "T");
  }
  void after(const Life& life, const std::optional<Place>& early, const std::optional<Place>& late,
             const std::string& what, const std::string& needed) {
    if (early && late && early->rank == late->rank && early->position >= late->position)
      findings_.add(*late,
                    text(life, what) + " stands before " + text(life, needed) + ", which it needs");
  }
  std::string text(const Life& life, const std::string& word) const {
    return std::to_string(life.stage) + word + to_string(reading_.microbatch(life.microbatch));
  }

  /// Every stage does it in the order of stage 0.
  void judge_order(const std::string& word, Part part) {
    const auto order_of = [&](std::size_t stage) {
      std::vector<const Life*> order;
      for (const Life& life : reading_.lives_of(stage)) order.push_back(&life);
      std::ranges::sort(order, {}, [&](const Life* life) { return *(life->*part); });
      return order;
    };
    const std::vector<const Life*> first = order_of(0);
    for (std::size_t s = 1; s < reading_.home.size(); ++s) {
      const std::vector<const Life*> order = order_of(s);
      const auto [here, there] =
          std::ranges::mismatch(order, first, {}, &Life::microbatch, &Life::microbatch);
      if (here != order.end())
        findings_.add(*((*here)->*part), text(**here, word) + " stands where stage 0 has " +
                                             text(**there, word) +
                                             ": all ranks need one order, for their collectives");
    }
  }

  const Reading& reading_;
  Findings& findings_;
  const std::size_t barriers_;
};

}  // namespace

void judge_head(const Reading& reading, Findings& findings) {
  HeadJudge(reading, findings).judge();
}

}  // namespace pfeife::judgement
