// Transfers: each value that must travel does, once, after it is made and before it is used, in one
// order for both sides.
#include <algorithm>
#include <map>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

class TransferJudge {
 public:
  TransferJudge(const Reading& reading, Findings& findings)
      : reading_(reading), findings_(findings) {}

  void judge() {
    for (std::uint32_t e = 0; e < reading_.required.stages.edges.size(); ++e) {
      const StageGraph::Edge& edge = reading_.edge(e);
      for (const Direction direction : {Direction::Forward, Direction::Backward}) {
        if (direction == Direction::Backward && !edge.gradient) continue;
        if (reading_.travels(edge)) judge_missing(e, direction);
        for (const Passage& passage : reading_.passages_of(e, direction)) judge_passage(passage);
      }
    }
    judge_order();
  }

 private:
  static bool onward(const Passage& p) { return p.direction == Direction::Forward; }
  StageId source(const Passage& p) const {
    return onward(p) ? reading_.edge(p.edge).from : reading_.edge(p.edge).to;
  }
  StageId target(const Passage& p) const {
    return onward(p) ? reading_.edge(p.edge).to : reading_.edge(p.edge).from;
  }
  std::string send_text(const Passage& p) const {
    return to_string(send(source(p), target(p), reading_.microbatch(p.microbatch), p.direction));
  }
  std::string recv_text(const Passage& p) const {
    return to_string(recv(target(p), source(p), reading_.microbatch(p.microbatch), p.direction));
  }
  std::string compute_text(StageId stage, const Passage& p, const Life& life) const {
    const char* kind = onward(p) ? "F" : life.backward ? "B" : "I";
    return to_string(stage) + kind + to_string(reading_.microbatch(p.microbatch));
  }
  static std::optional<Place> compute_place(const Passage& p, const Life& life) {
    return onward(p) ? life.forward : life.gradient();
  }

  /// Values of which neither SEND nor RECV is there.
  void judge_missing(std::uint32_t e, Direction direction) {
    std::vector<std::uint32_t> there;
    for (const Passage& p : reading_.passages_of(e, direction)) there.push_back(p.microbatch);
    const std::string missing =
        ranges_missing(there, static_cast<std::uint32_t>(reading_.required.microbatches),
                       reading_.required.slices);
    if (missing.empty()) return;
    const StageGraph::Edge& edge = reading_.edge(e);
    const bool forth = direction == Direction::Forward;
    const StageId from = forth ? edge.from : edge.to, to = forth ? edge.to : edge.from;
    findings_.add_missing(reading_, *reading_.home[to.index()],
                          std::string(forth ? "the value" : "the gradient") + " of stage " +
                              to_string(from) + " for stage " + to_string(to) +
                              " is neither sent nor received for microbatch " + missing);
  }

  void judge_passage(const Passage& p) {
    if (reading_.scattered[source(p).index()] || reading_.scattered[target(p).index()]) return;
    if (!reading_.travels(reading_.edge(p.edge))) {
      if (p.sent) findings_.add(*p.sent, local(send_text(p), p));
      if (p.received) findings_.add(*p.received, local(recv_text(p), p));
      return;
    }
    if (!p.received) findings_.add(*p.sent, send_text(p) + " has no " + recv_text(p));
    if (!p.sent) findings_.add(*p.received, recv_text(p) + " has no " + send_text(p));
    const Life* maker = reading_.life(source(p).index(), p.microbatch);
    if (p.sent && maker) {
      const auto maker_place = compute_place(p, *maker);
      if (maker_place && maker_place->rank == p.sent->rank &&
          maker_place->position > p.sent->position)
        findings_.add(*p.sent, send_text(p) + " stands before " +
                                   compute_text(source(p), p, *maker) +
                                   ", which makes what it sends");
    }
    const Life* user = reading_.life(target(p).index(), p.microbatch);
    if (p.received && user) {
      const auto user_place = compute_place(p, *user);
      if (user_place && user_place->rank == p.received->rank &&
          user_place->position < p.received->position)
        findings_.add(*p.received, recv_text(p) + " stands after " +
                                       compute_text(target(p), p, *user) +
                                       ", which needs what it receives");
    }
  }
  std::string local(const std::string& text, const Passage& p) const {
    const auto& home = reading_.home[source(p).index()];
    return text + ": stages " + to_string(source(p)) + " and " + to_string(target(p)) +
           (home ? " are both on rank " + std::to_string(*home) + ", nothing is sent"
                 : " are not both placed");
  }

  /// From one rank to another, what is sent first is received first.
  void judge_order() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const Passage*>> channels;
    for (const Passage& p : reading_.passages)
      if (p.sent && p.received) channels[{p.sent->rank, p.received->rank}].push_back(&p);
    for (auto& [ranks, sent] : channels) {
      std::ranges::sort(sent, {}, [](const Passage* p) { return p->sent->position; });
      auto received = sent;
      std::ranges::sort(received, {}, [](const Passage* p) { return p->received->position; });
      const auto [first_sent, first_received] = std::ranges::mismatch(sent, received);
      if (first_sent == sent.end()) continue;
      findings_.add(*(*first_sent)->sent,
                    send_text(**first_sent) + " is sent to rank " + std::to_string(ranks.second) +
                        " where that rank receives " + recv_text(**first_received) +
                        ": both sides must have the same order");
    }
  }

  const Reading& reading_;
  Findings& findings_;
};

}  // namespace

void judge_transfers(const Reading& reading, Findings& findings) {
  TransferJudge(reading, findings).judge();
}

}  // namespace pfeife::judgement
