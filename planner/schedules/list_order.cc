#include "planner/schedules/list_order.h"

#include <algorithm>
#include <limits>

#include "planner/ir/basics/error.h"
#include "planner/schedules/soonest.h"

namespace pfeife {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
/// In place of std::optional, which is written in parts and read as a whole: a fifth of the time.
constexpr std::uint32_t kNoStage = std::numeric_limits<std::uint32_t>::max();

/// Forwards that each rank can do from its first one until the first gradient may be back there.
std::vector<std::size_t> round_trips(const OrderModel& model, bool rounded_up) {
  std::vector<std::int64_t> forward(model.stages, 0), input(model.stages, 0);  // earliest ends
  std::vector<std::int64_t> first_start(model.stages, 0);
  for (std::size_t k = 0; k < model.slices; ++k)
    for (std::size_t s = 0; s < model.stages; ++s) {
      for (const OrderModel::Wait& wait : model.waits[0][model.at(s, k)])
        forward[s] = std::max(forward[s], forward[wait.stage] + wait.delay);
      if (k == 0) first_start[s] = forward[s];
      forward[s] += model.duration[0][model.at(s, k)];
    }
  std::vector<std::size_t> count;
  for (std::size_t s = model.stages; s-- > 0;) {
    input[s] = forward[s];
    for (const OrderModel::Wait& wait : model.waits[1][model.at(s, 0)])
      input[s] = std::max(input[s], input[wait.stage] + wait.delay);
    input[s] += model.duration[1][model.at(s, 0)];
  }
  for (const auto& stages : model.stages_of_rank) {
    std::int64_t forwards = 0;
    for (const std::uint32_t s : stages)
      for (std::size_t k = 0; k < model.slices; ++k) forwards += model.duration[0][model.at(s, k)];
    const std::uint32_t first = stages.front(), last = stages.back();
    const std::int64_t time =
        input[last] - model.duration[1][model.at(last, 0)] - first_start[first];
    const auto of_each = static_cast<std::int64_t>(stages.size() * model.slices);
    const std::int64_t whole = std::max<std::int64_t>(forwards, 1);
    count.push_back(static_cast<std::size_t>(
        std::max<std::int64_t>(1, (time * of_each + (rounded_up ? whole - 1 : 0)) / whole)));
  }
  return count;
}

std::vector<std::size_t> flight_limits(const OrderModel& model, ListRules::Flight flight) {
  using Flight = ListRules::Flight;
  if (flight == Flight::Memory)
    return std::vector(model.ranks, std::numeric_limits<std::size_t>::max());
  if (flight == Flight::Within || flight == Flight::Until)
    return round_trips(model, flight == Flight::Until);
  std::vector<std::size_t> limits;
  for (std::size_t r = 0; r < model.ranks; ++r) {
    const std::size_t before = model.ranks - 1 - r + (model.stages / model.ranks - 1) * model.ranks;
    // Before the first backward come all slices of a microbatch, on every stage of the rank.
    const std::size_t more = (model.slices - 1) * model.stages_of_rank[r].size();
    limits.push_back((flight == Flight::Twice ? 2 : 1) * before + 1 + more);
  }
  return limits;
}

/// One build. The rank that can decide first decides first, so everything that has been decided
/// before is known when it does. `kByCount`: the lists of the model are not by stage alone, as
/// slices or microbatches differ.
template <bool kByCount>
class Builder {
 public:
  Builder(const OrderModel& model, const ListRules& rules, std::int64_t enough)
      : model_(model),
        rules_(rules),
        enough_(enough),
        end_(model.actions(), -1),
        done_(kParts * model.stages, 0),
        arrivals_(2 * model.stages),
        free_(model.ranks, 0),
        wake_(model.ranks),
        idle_(model.ranks, 0),
        held_(model.ranks, 0),
        order_(model.ranks),
        least_(model.tail),
        saved_until_(model.stages),
        reserve_(model.stages, 0),
        flight_(model.ranks, 0),
        flight_limit_(flight_limits(model, rules.flight)) {
    for (std::size_t s = 0; s < model.stages; ++s) {
      const std::size_t rank = model.rank_of_stage[s];
      least_[rank] += model.work(s);
      saved_until_[s].push_back(0);
      for (std::size_t k = 0; k < model.slices; ++k)
        saved_until_[s].push_back(saved_until_[s].back() + model.growth[0][model.at(s, k)]);
      for (std::size_t b = 0; b < model.period; ++b)  // the largest, where microbatches differ
        saved_until_[s].back() = std::max(saved_until_[s].back(), model.growth[0][model.at(s, b)]);
    }
    for (std::size_t r = 0; r < model.ranks; ++r) {
      const auto& stages = model.stages_of_rank[r];
      std::int64_t& behind = reserve_[stages.back()];  // what a first I adds, of key gradients
      for (const std::uint32_t s : stages)
        if (model.slices > 1) behind = std::max(behind, model.growth[1][model.at(s, 0)]);
      for (std::size_t i = stages.size(); i-- > 1;)
        reserve_[stages[i - 1]] = reserve_[stages[i]] + saved_until_[stages[i]].back();
      order_[r].reserve(kParts * model.microbatches * stages.size());
    }
  }

  std::optional<Order> build() {
    std::size_t left = model_.actions();
    while (left > 0) {
      if (too_slow_) return std::nullopt;
      const std::size_t rank = wake_.rank();
      if (wake_[rank] == kNever) {
        unblock();
        --left;
        continue;
      }
      if (const Turn turn = choose(rank, wake_[rank]); turn.stage != kNoStage) {
        run(rank, turn, wake_[rank]);
        --left;
      }
    }
    return std::move(order_);
  }

 private:
  std::uint32_t& done(Part part, std::size_t stage) {
    return done_[static_cast<std::size_t>(part) * model_.stages + stage];
  }
  std::size_t index(Part part, std::size_t stage, std::size_t b) const {
    return (static_cast<std::size_t>(part) * model_.stages + stage) * model_.microbatches + b;
  }
  std::size_t at(std::size_t stage, std::size_t b) const {
    return kByCount ? model_.at(stage, b) : stage;
  }
  /// ns of the stage's part with that count.
  std::int64_t duration(Part part, std::size_t stage, std::size_t b) const {
    return model_.duration[static_cast<std::size_t>(part)][at(stage, b)];
  }
  std::int64_t growth(Part part, std::size_t stage, std::size_t b) const {
    return model_.growth[static_cast<std::size_t>(part)][at(stage, b)];
  }

  /// When the stage's next part has all it waits for; `decided` = all of it has been, else it
  /// cannot be before that.
  struct Arrival {
    std::int64_t time = kNever;
    bool decided = false;
    bool settled = false;  ///< stays so until a part of this stage runs
  };
  const Arrival& arrival(Part part, std::size_t stage) const {
    return arrivals_[static_cast<std::size_t>(part) * model_.stages + stage];
  }
  Arrival& arrival(Part part, std::size_t stage) {
    return arrivals_[static_cast<std::size_t>(part) * model_.stages + stage];
  }
  const Arrival& look(Part part, std::size_t stage, std::int64_t now) {
    Arrival& arrival = this->arrival(part, stage);
    if (arrival.settled) return arrival;
    const std::size_t b = done(part, stage);
    arrival = {kNever, true, true};
    if (b >= model_.microbatches) return arrival;
    if (part == Part::Input &&
        done(Part::Forward, stage) < (kByCount ? model_.forwards_before_input(b) : b + 1))
      return arrival;
    std::int64_t time = 0;
    bool decided = true;
    for (const OrderModel::Wait& wait :
         model_.waits[static_cast<std::size_t>(part)][at(stage, b)]) {
      std::int64_t ready = end_[index(part, wait.stage, b)];
      if (ready < 0) {
        decided = false;
        ready =
            std::max(now, free_[model_.rank_of_stage[wait.stage]]) + duration(part, wait.stage, b);
      }
      time = std::max(time, ready + wait.delay);
    }
    arrival = {time, decided, decided};
    return arrival;
  }

  bool room_for(std::size_t rank, Part part, std::size_t stage) {
    const std::int64_t growth = this->growth(part, stage, done(part, stage));
    const std::int64_t reserved = part == Part::Forward ? reserve(rank, stage) : 0;
    return growth <= 0 || held_[rank] + growth + reserved <= model_.room[rank];
  }
  /// Bytes that the rank needs behind the stage's next F until a backward lets go of memory: for
  /// later stages, less what these hold of the microbatch already, and for its first I. (Nothing
  /// for its later slices on this stage: microbatches before it have all theirs, and let go first.)
  std::int64_t reserve(std::size_t rank, std::size_t stage) {
    std::int64_t bytes = reserve_[stage];
    if constexpr (!kByCount) return bytes;
    if (model_.slices == 1) return bytes;
    const std::size_t b = done(Part::Forward, stage), slice = b % model_.slices;
    for (const std::size_t s : model_.stages_of_rank[rank])
      if (const std::size_t there = done(Part::Forward, s); s > stage && there + slice > b)
        bytes -= saved_until_[s][there + slice - b];
    return bytes;
  }
  /// Looks once at what the stages of the rank wait for; what choose() asks follows from it.
  void look(std::size_t rank, std::int64_t now) {
    for (const std::size_t s : model_.stages_of_rank[rank])
      look(Part::Forward, s, now), look(Part::Input, s, now);
  }
  /// What goes first by the rules: less.
  std::size_t precedence(Part part, std::size_t stage) {
    const std::size_t b = done(part, stage), from_last = model_.stages - 1 - stage;
    if (rules_.deep_first) return part == Part::Forward ? from_last : b * model_.stages + stage;
    return b / model_.ranks * model_.stages + (part == Part::Forward ? stage : from_last);
  }
  /// The stage that goes first of those whose part is ready; kNoStage = none.
  std::size_t first_ready(std::size_t rank, Part part, std::int64_t now) {
    std::size_t best = kNoStage;
    for (const std::size_t s : model_.stages_of_rank[rank]) {
      const Arrival& at = arrival(part, s);
      if (!at.decided || at.time > now) continue;
      if (best == kNoStage || precedence(part, s) < precedence(part, best)) best = s;
    }
    return best;
  }

  /// The first moment at which something else than W may be ready here.
  std::int64_t next_arrival(std::size_t rank, std::int64_t now, bool decided_only,
                            bool inputs_only = false) const {
    std::int64_t next = kNever;
    const auto consider = [&](const Arrival& at) {
      if (at.time > now && (at.decided || !decided_only)) next = std::min(next, at.time);
    };
    for (const std::size_t s : model_.stages_of_rank[rank]) {
      if (!inputs_only) consider(arrival(Part::Forward, s));
      consider(arrival(Part::Input, s));
    }
    return next;
  }

  /// The stage whose oldest W waits longest; kNoStage = there is no W.
  std::size_t pending_weight(std::size_t rank) {
    std::size_t best = kNoStage;
    std::int64_t oldest = kNever;
    for (const std::size_t s : model_.stages_of_rank[rank]) {
      const std::size_t b = done(Part::Weight, s);
      if (done(Part::Input, s) <= b) continue;
      const std::int64_t since = end_[index(Part::Input, s, b)];
      if (since < oldest) oldest = since, best = s;
    }
    return best;
  }

  bool crowding_allowed(std::size_t rank) {
    if (rules_.crowd != ListRules::Crowd::WarmUp) return rules_.crowd == ListRules::Crowd::Always;
    return std::ranges::all_of(model_.stages_of_rank[rank],
                               [&](std::size_t s) { return done(Part::Input, s) == 0; });
  }

  /// What the rank does at `now`; of kNoStage = it waits, and wake_ says until when.
  Turn choose(std::size_t rank, std::int64_t now) {
    const auto turn = [](Part part, std::size_t stage) {
      return Turn{part, static_cast<std::uint32_t>(stage)};
    };
    look(rank, now);
    const std::size_t weight = pending_weight(rank);
    const std::size_t input = first_ready(rank, Part::Input, now);
    std::size_t forward = first_ready(rank, Part::Forward, now);
    bool no_room = false;
    if (forward != kNoStage && !room_for(rank, Part::Forward, forward))
      no_room = true, forward = kNoStage;
    if (flight_[rank] >= flight_limit_[rank]) forward = kNoStage;
    if (input != kNoStage && !(forward != kNoStage && rules_.forward_first)) {
      if (room_for(rank, Part::Input, input) || weight == kNoStage) return turn(Part::Input, input);
      return turn(Part::Weight, weight);
    }
    if (forward != kNoStage) {
      const std::int64_t next = next_arrival(rank, now, true, true);
      const bool crowds =
          next < now + duration(Part::Forward, forward, done(Part::Forward, forward));
      if (input != kNoStage || !crowds || crowding_allowed(rank))
        return turn(Part::Forward, forward);
    }
    const std::int64_t gap = next_arrival(rank, now, false) - now;
    if (weight != kNoStage && (no_room || fills(rank, weight, gap)))
      return turn(Part::Weight, weight);
    wake_.set(rank, next_arrival(rank, now, true));
    return turn(Part::Weight, kNoStage);
  }

  bool fills(std::size_t rank, std::size_t stage, std::int64_t gap) {
    const std::int64_t length = duration(Part::Weight, stage, done(Part::Weight, stage));
    if (length <= gap) return true;
    switch (rules_.fill) {
      case ListRules::Fill::Fitting:
        return false;
      case ListRules::Fill::Half:
        return length / 2 <= gap;
      case ListRules::Fill::Fairly:
        return idle_[rank] + gap > most_idle_;
      default:
        return true;
    }
  }

  void run(std::size_t rank, Turn turn, std::int64_t start) {
    const std::uint32_t b = done(turn.part, turn.stage)++;
    const std::int64_t end = start + duration(turn.part, turn.stage, b);
    if (!order_[rank].empty()) idle_[rank] += start - free_[rank];
    most_idle_ = std::max(most_idle_, idle_[rank]);
    least_[rank] += start - free_[rank];
    too_slow_ = too_slow_ || least_[rank] > enough_;
    end_[index(turn.part, turn.stage, b)] = end;
    if (turn.part != Part::Weight) arrival(turn.part, turn.stage).settled = false;
    if (turn.part == Part::Forward) arrival(Part::Input, turn.stage).settled = false;
    free_[rank] = end;
    held_[rank] += growth(turn.part, turn.stage, b);
    if (turn.part == Part::Forward) ++flight_[rank];
    if (turn.part == Part::Input) --flight_[rank];
    order_[rank].push_back(turn);
    const std::size_t all = kParts * model_.microbatches * model_.stages_of_rank[rank].size();
    wake_.set(rank, order_[rank].size() == all ? kNever : end);
    for (const OrderModel::Wait& wake :
         model_.wakes[static_cast<std::size_t>(turn.part)][at(turn.stage, b)]) {
      const std::size_t other = model_.rank_of_stage[wake.stage];
      if (other == rank) continue;
      wake_.set(other, std::min(wake_[other], std::max(free_[other], end + wake.delay)));
    }
  }

  /// Everybody waits: memory or the rules hold back what is ready. The earliest action that has all
  /// it needs goes ahead, W before I before F.
  void unblock() {
    std::optional<std::pair<std::size_t, Turn>> best;
    std::int64_t start = kNever;
    for (const Part part : {Part::Weight, Part::Input, Part::Forward})
      for (std::size_t s = 0; s < model_.stages; ++s) {
        const std::size_t rank = model_.rank_of_stage[s];
        std::int64_t at = free_[rank];
        if (part == Part::Weight) {
          if (done(part, s) >= done(Part::Input, s)) continue;
        } else {
          const Arrival& arrives = look(part, s, at);
          if (!arrives.decided || arrives.time == kNever) continue;
          if (part == Part::Forward && !room_for(rank, part, s)) continue;
          at = std::max(at, arrives.time);
        }
        if (at < start) start = at, best = {rank, Turn{part, static_cast<std::uint32_t>(s)}};
      }
    if (!best) best = beyond_room(start);
    PFEIFE_CHECK(best, "an order of a chain of stages cannot end");
    run(best->first, best->second, start);
  }
  /// The deepest forward that is ready, whatever it holds.
  std::optional<std::pair<std::size_t, Turn>> beyond_room(std::int64_t& start) {
    for (std::size_t s = model_.stages; s-- > 0;) {
      const std::size_t rank = model_.rank_of_stage[s];
      const Arrival& arrives = look(Part::Forward, s, free_[rank]);
      if (!arrives.decided || arrives.time == kNever) continue;
      start = std::max(free_[rank], arrives.time);
      return std::pair{rank, Turn{Part::Forward, static_cast<std::uint32_t>(s)}};
    }
    return std::nullopt;
  }

  const OrderModel& model_;
  const ListRules& rules_;
  std::int64_t enough_;
  bool too_slow_ = false;
  std::vector<std::int64_t> end_;    // [part, stage, microbatch] -1 = not decided
  std::vector<std::uint32_t> done_;  // [part, stage] decided
  std::vector<Arrival> arrivals_;    // [F, I][stage] of the next microbatch
  std::vector<std::int64_t> free_;   // [rank] end of what is decided
  Soonest wake_;                     // [rank] when it decides again
  std::vector<std::int64_t> idle_;   // [rank] since its first action
  std::int64_t most_idle_ = 0;       // of all ranks
  std::vector<std::int64_t> held_;   // [rank] bytes
  Order order_;
  std::vector<std::int64_t> least_;  // [rank] time of its work and of what it has idled
  std::vector<std::vector<std::int64_t>> saved_until_;  // [stage][slice] bytes of those before it
  std::vector<std::int64_t> reserve_;  // [stage] bytes needed behind an F of it: see reserve()
  std::vector<std::size_t> flight_;    // [rank] forwards in flight
  std::vector<std::size_t> flight_limit_;
};

}  // namespace

std::optional<Order> list_order(const OrderModel& model, const ListRules& rules,
                                std::int64_t enough) {
  if (model.period > 1) return Builder<true>(model, rules, enough).build();
  return Builder<false>(model, rules, enough).build();
}

}  // namespace pfeife
