#include "planner/search/orders/fastest_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/ir/schedule/action_time.h"
#include "planner/schedules/order_model.h"

namespace pfeife {
namespace {

/// As lower() counts time, so that values come in the order in which it has them come: a transfer
/// takes one at least.
constexpr std::int64_t kTicks = 1024;  // a nanosecond
constexpr std::int64_t kPast = std::numeric_limits<std::int64_t>::min() / 4;

using Times = std::array<std::array<std::int64_t, kFewMicrobatches>, kFewStages>;

/// How far a run is, and what of the past decides how it goes on. Times in ticks; of an order as
/// values come, from `now` on.
struct State {
  RowMemory::Progress done{};
  std::array<std::int64_t, kFewRanks> free{};
  std::array<bool, kFewRanks> idle{};            ///< before `now`: it waits for a value to come
  std::array<std::int64_t, kFewRanks> unsent{};  ///< bytes that go once the last action is over
  std::array<Times, 2> ends{};                   ///< F, B or I: ends; kPast = long there
  std::int64_t now = 0;                          ///< start of the last action
  std::size_t now_rank = 0;                      ///< whose it was
  std::uint32_t step = 0;                        ///< in the list of steps
  bool beaten = false;

  bool as_good_as(const State& other, Receives receives) const {
    if (receives == Receives::AsReady)
      return now <= other.now && now_rank == other.now_rank && done == other.done &&
             free == other.free && idle == other.idle && unsent == other.unsent &&
             ends == other.ends;
    if (done != other.done || free[0] > other.free[0] || free[1] > other.free[1]) return false;
    for (std::size_t way = 0; way < 2; ++way)
      for (std::size_t s = 0; s < kFewStages; ++s)
        for (std::size_t m = 0; m < kFewMicrobatches; ++m)
          if (ends[way][s][m] > other.ends[way][s][m]) return false;
    return true;
  }
  /// Equal for states that may be as good as each other.
  std::uint64_t key(Receives receives) const {
    std::uint64_t key = 1469598103934665603ULL;  // FNV-1a
    const auto add = [&](auto number) {
      key = (key ^ static_cast<std::uint64_t>(number)) * 1099511628211ULL;
    };
    for (const StageProgress& of : done) add(of.forward), add(of.backward), add(of.weight);
    if (receives == Receives::AtNeed) return key;
    for (const std::int64_t time : free) add(time);
    for (const Times& times : ends)
      for (const auto& of_stage : times)
        for (const std::int64_t time : of_stage) add(time);
    return key;
  }
};

class Trial {
 public:
  Trial(const StageCosts& costs, const Placement& placement, std::size_t microbatches,
        const std::vector<Bytes>& limit, Receives receives, std::int64_t enough)
      : costs_(costs),
        placement_(placement),
        microbatches_(microbatches),
        limit_(limit),
        receives_(receives),
        enough_(enough),
        memory_(costs, placement),
        fronts_(3 * costs.stages.size() * microbatches + 1) {
    const std::vector<std::int64_t> tails = step_tails(costs, placement);
    for (std::size_t r = 0; r < tails.size(); ++r) optimizer_[r] = kTicks * tails[r];
    list_messages();
    find_tails();
  }

  OrderTrial run(std::size_t& budget) {
    State start;
    for (Times& times : start.ends)
      for (auto& of_stage : times) of_stage.fill(kPast);
    steps_.push_back({});
    if (may_be_faster(start)) keep(start);
    for (std::size_t parts = 0; parts + 1 < fronts_.size(); ++parts) {
      const std::vector<State> states = std::exchange(fronts_[parts], {}).states;
      for (const State& state : states) {
        if (state.beaten) continue;
        if (budget == 0) return {std::nullopt, 0, false};
        --budget;
        for (std::size_t s = 0; s < costs_.stages.size(); ++s) go_on(state, s);
      }
    }
    OrderTrial trial;
    for (const State& state : fronts_.back().states) {
      const std::int64_t time = end(state);
      if (!trial.fastest || time < trial.time) trial.fastest = order_to(state), trial.time = time;
    }
    return trial;
  }

 private:
  /// Microbatch by microbatch from stage to stage: values (way 0), gradients (1).
  struct Message {
    std::size_t pair = 0, way = 0, maker = 0, reader = 0;
    std::int64_t delay = 0;  ///< ticks
    bool crosses = false;    ///< to another rank
  };
  struct Step {
    std::uint32_t before = 0;
    std::uint32_t stage = 0;
    Op op = Op::Forward;
  };
  struct Front {
    std::vector<State> states;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> alike;
  };

  std::size_t rank(std::size_t stage) const { return placement_.rank_of_stage[stage].index(); }
  std::int64_t time(Op op, std::size_t stage) const {
    return kTicks * action_time({.op = op, .stage = StageId{stage}}, costs_).count();
  }
  static std::uint8_t done(const State& state, std::size_t stage, std::size_t way) {
    return way == 0 ? state.done[stage].forward : state.done[stage].backward;
  }
  static bool reads(Op op, std::size_t stage, const Message& message) {
    return message.reader == stage &&
           (message.way == 0 ? op == Op::Forward : makes_input_gradient(op));
  }
  void list_messages() {
    const auto ticks = [](Nanoseconds time) {
      return std::max<std::int64_t>(1, kTicks * time.count());
    };
    for (std::size_t p = 0; p < costs_.pairs.size(); ++p) {
      const StagePair& pair = costs_.pairs[p];
      const std::size_t from = pair.from.index(), to = pair.to.index();
      const bool crosses = rank(from) != rank(to);
      messages_.push_back({p, 0, from, to, ticks(pair.forward_time), crosses});
      if (pair.has_gradient)
        messages_.push_back({p, 1, to, from, ticks(pair.backward_time), crosses});
    }
  }

  /// What surely follows from the start of an action on.
  void find_tails() {
    const auto follow = [&](std::size_t way, std::size_t s, Op op) {
      for (const Message& message : messages_)
        if (message.way == way && message.maker == s)
          tail_[way][s] = std::max(
              tail_[way][s], tail_[way][message.reader] + (message.crosses ? message.delay : 0));
      tail_[way][s] += time(op, s);
    };
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      tail_[1][s] = tail_[2][s] = time(Op::BackwardWeight, s) + optimizer_[rank(s)];
      follow(1, s, Op::BackwardInput);
    }
    for (std::size_t s = costs_.stages.size(); s-- > 0;) {
      tail_[0][s] = tail_[1][s];
      follow(0, s, Op::Forward);
    }
  }

  /// Every action of the stage that may be next.
  void go_on(const State& state, std::size_t s) {
    const StageProgress& of = state.done[s];
    if (of.forward < microbatches_) begin(state, s, Op::Forward, of.whole);
    if (of.weight < of.backward) begin(state, s, Op::BackwardWeight, false);
    if (of.backward == of.forward) return;
    if (of.backward == 0 || of.whole) begin(state, s, Op::Backward, true);
    if (of.backward > 0 && of.whole) return;
    begin(state, s, Op::BackwardInput, false);
    // Never earlier than I and W, but what waits for it may be the better for coming later.
    if (receives_ == Receives::AsReady) begin(state, s, Op::Backward, false);
  }

  void begin(const State& from, std::size_t s, Op op, bool whole) {
    const std::optional<std::int64_t> start = ready(from, s, op);
    if (!start) return;
    const bool as_they_come = receives_ == Receives::AsReady;
    if (as_they_come && std::pair{*start, rank(s)} < std::pair{std::int64_t{0}, from.now_rank})
      return;  // the same runs begin with it
    State next = from;
    next.done[s].whole = whole;
    if (!fits(next, s, op, *start)) return;
    const std::int64_t end = *start + time(op, s);
    next.free[rank(s)] = end, next.idle[rank(s)] = false;
    StageProgress& of = next.done[s];
    if (op == Op::Forward) next.ends[0][s][of.forward++] = end;
    if (makes_input_gradient(op)) next.ends[1][s][of.backward++] = end;
    if (makes_weight_gradient(op)) ++of.weight;
    if (as_they_come && !move_now(next, *start, rank(s))) return;
    forget_past(next);
    if (!may_be_faster(next)) return;
    next.step = static_cast<std::uint32_t>(steps_.size());
    if (keep(next)) steps_.push_back({from.step, static_cast<std::uint32_t>(s), op});
  }

  /// When the next microbatch's action may begin; nullopt: not all is made that it reads, or an
  /// idle rank need not have waited for it.
  std::optional<std::int64_t> ready(const State& state, std::size_t s, Op op) const {
    const std::int64_t free = state.free[rank(s)];
    std::int64_t start = free;
    bool now = !state.idle[rank(s)];
    for (const Message& message : messages_) {
      if (!reads(op, s, message)) continue;
      const std::size_t m = done(state, s, message.way);
      if (done(state, message.maker, message.way) <= m) return std::nullopt;
      if (!message.crosses) continue;
      const std::int64_t there = state.ends[message.way][message.maker][m] + message.delay;
      start = std::max(start, there), now = now || there >= free;
    }
    if (!now) return std::nullopt;
    return start;
  }

  /// What has come to the rank by then.
  RowMemory::Received received(const State& state, std::size_t r, std::int64_t until,
                               bool with_those_made_then) const {
    RowMemory::Received count{};
    for (const Message& message : messages_) {
      if (!message.crosses || rank(message.reader) != r) continue;
      std::uint8_t& of = count[message.pair];
      of = done(state, message.reader, message.way);
      for (; of < done(state, message.maker, message.way); ++of) {
        const std::int64_t end = state.ends[message.way][message.maker][of];
        if (end > until || (end == until && !with_those_made_then)) break;
      }
    }
    return count;
  }
  /// What the rank must have by the time of an action.
  RowMemory::Received needed(const State& state, std::size_t s, Op op) const {
    RowMemory::Received count = received(state, rank(s), kPast - 1, false);
    for (const Message& message : messages_)
      if (message.crosses && reads(op, s, message)) ++count[message.pair];
    return count;
  }

  bool fits(State& state, std::size_t s, Op op, std::int64_t start) {
    const std::size_t r = rank(s);
    if (receives_ == Receives::AsReady && !settle_sends(state, r)) return false;
    const RowMemory::Held held = memory_.during(
        state.done,
        receives_ == Receives::AtNeed ? needed(state, s, op) : received(state, r, start, true), s,
        op);
    state.unsent[r] = receives_ == Receives::AtNeed ? 0 : held.sent;
    return held.most <= limit_[r].value;
  }
  /// What came to a rank while its last action ran was there beside what that had not sent yet. Of
  /// what is made at the same moment the lower rank is the first to send.
  bool settle_sends(State& state, std::size_t r) {
    const std::int64_t unsent = std::exchange(state.unsent[r], 0);
    if (unsent == 0) return true;
    const RowMemory::Received by_then = received(state, r, state.free[r], r > 0);
    return memory_.before(state.done, by_then, r) + unsent <= limit_[r].value;
  }
  bool finished(const State& state, std::size_t r) const {
    for (std::size_t s = 0; s < costs_.stages.size(); ++s)
      if (rank(s) == r && state.done[s].weight < microbatches_) return false;
    return true;
  }
  /// Counts times from the start of an action on.
  bool move_now(State& state, std::int64_t start, std::size_t r) {
    for (std::size_t other = 0; other < placement_.ranks(); ++other) {
      if (other == r || state.free[other] >= start) continue;
      if (!settle_sends(state, other)) return false;
      if (finished(state, other)) continue;
      state.free[other] = start, state.idle[other] = true;
    }
    for (std::int64_t& free : state.free) free -= start;
    for (Times& times : state.ends)
      for (auto& of_stage : times)
        for (std::int64_t& time : of_stage)
          if (time != kPast) time -= start;
    state.now += start, state.now_rank = r;
    return true;
  }
  /// Times that nothing depends on any more.
  void forget_past(State& state) const {
    const std::array<Times, 2> all_ends = state.ends;
    for (Times& times : state.ends)
      for (auto& of_stage : times) of_stage.fill(kPast);
    for (const auto& [pair, way, maker, reader, delay, crosses] : messages_) {
      if (!crosses) continue;
      const std::size_t r = rank(reader);
      const std::int64_t past = state.free[r] - (state.idle[r] ? 1 : 0);
      for (std::size_t m = done(state, reader, way); m < done(state, maker, way); ++m)
        if (all_ends[way][maker][m] + delay > past)
          state.ends[way][maker][m] = all_ends[way][maker][m];
    }
  }

  bool may_be_faster(const State& state) const {
    std::array<std::int64_t, kFewRanks> least{};
    for (std::size_t r = 0; r < placement_.ranks(); ++r) least[r] = state.free[r] + optimizer_[r];
    std::int64_t most = 0;
    for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
      const StageProgress& of = state.done[s];
      const auto follow = [&](std::size_t part, Op op, std::size_t done) {
        const auto left = static_cast<std::int64_t>(microbatches_ - done);
        if (left == 0) return;
        least[rank(s)] += left * time(op, s);
        most = std::max(most, state.free[rank(s)] + (left - 1) * time(op, s) + tail_[part][s]);
      };
      follow(0, Op::Forward, of.forward);
      follow(1, Op::BackwardInput, of.backward);
      follow(2, Op::BackwardWeight, of.weight);
    }
    for (std::size_t r = 0; r < placement_.ranks(); ++r) most = std::max(most, least[r]);
    return (state.now + most) / kTicks < enough_;
  }
  std::int64_t end(const State& state) const {
    std::int64_t most = 0;
    for (std::size_t r = 0; r < placement_.ranks(); ++r)
      most = std::max(most, state.now + state.free[r] + optimizer_[r]);
    return most / kTicks;
  }

  bool keep(const State& state) {
    std::size_t parts = 0;
    for (const StageProgress& of : state.done) parts += of.forward + of.backward + of.weight;
    Front& front = fronts_[parts];
    std::vector<std::size_t>& alike = front.alike[state.key(receives_)];
    for (const std::size_t i : alike)
      if (front.states[i].as_good_as(state, receives_)) return false;
    std::erase_if(alike, [&](std::size_t i) {
      return front.states[i].beaten = state.as_good_as(front.states[i], receives_);
    });
    alike.push_back(front.states.size());
    front.states.push_back(state);
    return true;
  }

  Schedule order_to(const State& last) const {
    std::vector<Step> steps;
    for (std::uint32_t k = last.step; k > 0; k = steps_[k].before) steps.push_back(steps_[k]);
    std::ranges::reverse(steps);
    Schedule order;
    order.rows.resize(placement_.ranks());
    std::array<std::size_t, kFewStages> forwards{}, backwards{};
    std::array<std::vector<std::size_t>, kFewStages> halves;  // microbatches between I and W
    for (const auto& [before, s, op] : steps) {
      std::size_t microbatch = 0;
      if (op == Op::Forward) microbatch = forwards[s]++;
      if (makes_input_gradient(op)) microbatch = backwards[s]++;
      if (op == Op::BackwardInput) halves[s].push_back(microbatch);
      if (op == Op::BackwardWeight) {
        microbatch = halves[s].front();
        halves[s].erase(halves[s].begin());
      }
      order.rows[rank(s)].emplace_back(Action{
          .op = op, .stage = StageId{std::size_t{s}}, .microbatch = MicrobatchId{microbatch}});
    }
    return order;
  }

  const StageCosts& costs_;
  const Placement& placement_;
  std::size_t microbatches_;
  const std::vector<Bytes>& limit_;
  Receives receives_;
  std::int64_t enough_;  // ns
  RowMemory memory_;
  std::vector<Message> messages_;
  std::array<std::int64_t, kFewRanks> optimizer_{};             // ticks
  std::array<std::array<std::int64_t, kFewStages>, 3> tail_{};  // [F, I, W][stage] ticks
  std::vector<Step> steps_;
  std::vector<Front> fronts_;  // [parts done]
};

}  // namespace

bool few_orders(const Placement& placement, std::size_t microbatches) {
  constexpr std::size_t kFew = 12;  // forwards
  return placement.ranks() <= kFewRanks && placement.stages() <= kFewStages &&
         microbatches <= kFewMicrobatches && placement.stages() * microbatches <= kFew;
}

OrderTrial fastest_order(const StageCosts& costs, const Placement& placement,
                         std::size_t microbatches, const std::vector<Bytes>& limit,
                         Receives receives, std::int64_t enough, std::size_t& budget) {
  return Trial(costs, placement, microbatches, limit, receives, enough).run(budget);
}

}  // namespace pfeife
