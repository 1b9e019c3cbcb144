#include "tests/support/random_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife::testing {
namespace {

using Task = std::tuple<Op, StageId, std::size_t>;

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  RandomProgram make() {
    microbatches_ = 1 + below(4);
    const std::size_t ranks = 1 + below(4);
    place(ranks, ranks + below(3));
    price();
    order_compute();
    if (chance(3))
      add_transfers();
    else
      lower_it();
    add_endings();
    if (chance(3)) disturb();
    program_.launch = Nanoseconds{chance(3) ? below(20) : 0};
    return std::move(program_);
  }

  RandomProgram make_for(const StageGraph& stages) {
    microbatches_ = 1 + below(4);
    place(1 + below(std::min<std::size_t>(4, stages.stages)), stages.stages);
    price_as(stages);
    order_compute();
    if (chance(3))
      add_transfers();
    else
      lower_it();
    add_endings();
    if (chance(4)) disturb();
    return std::move(program_);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  /// Zero now and then: many things at the same moment.
  Nanoseconds some() { return Nanoseconds{chance(6) ? 0 : below(chance(2) ? 4 : 100)}; }
  static StageId stage(std::size_t s) { return StageId{s}; }
  static MicrobatchId microbatch(std::size_t m) { return MicrobatchId{m}; }

  void place(std::size_t ranks, std::size_t stages) {
    program_.placement = round_robin(stages, ranks);
    std::shuffle(program_.placement.rank_of_stage.begin(), program_.placement.rank_of_stage.end(),
                 random_);
    program_.schedule.rows.resize(ranks);
  }

  void price_as(const StageGraph& stages) {
    StageCosts& costs = program_.costs;
    costs.stages.resize(stages.stages);
    for (StageCost& s : costs.stages)
      s.forward = some(), s.backward_input = some(), s.backward_weight = some();
    for (const StageGraph::Edge& e : stages.edges)
      costs.pairs.push_back(
          {e.from, e.to, Bytes{1}, Bytes{e.gradient ? 1 : 0}, some(), some(), e.gradient});
    for (const auto& group : stages.tied) costs.reductions.push_back({group, Bytes{1}, some()});
  }

  void price() {
    const std::size_t stages = program_.placement.stages();
    StageCosts& costs = program_.costs;
    costs = uniform_costs(stages, {}, {}, {}, {});
    for (StageCost& s : costs.stages)
      s.forward = some(), s.backward_input = some(), s.backward_weight = some(),
      s.optimizer = some();
    for (std::size_t from = 0; from + 2 < stages; ++from)
      for (std::size_t to = from + 2; to < stages; ++to)
        if (chance(4))
          costs.pairs.push_back({stage(from), stage(to), Bytes{1}, Bytes{1}, {}, {}, !chance(3)});
    std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
    for (StagePair& pair : costs.pairs) pair.forward_time = some(), pair.backward_time = some();
    for (int ties = 0; ties < 2 && stages > 1 && chance(2); ++ties) {
      std::set<StageId> group;
      while (group.size() < 2) group.insert(stage(below(stages)));
      costs.reductions.push_back({{group.begin(), group.end()}, Bytes{1}, some()});
    }
    costs.overlap_factor = chance(2) ? 1 : 0.5 + 0.01 * static_cast<double>(below(100));
  }

  // --- computing, in a random order that could run
  bool made(Op op, StageId s, std::size_t m) const { return done_.contains({op, s, m}); }
  bool runnable(Op op, StageId s, std::size_t m) const {
    if (made(op, s, m)) return false;
    if (op == Op::BackwardWeight) return split_.at({s, m}) && made(Op::BackwardInput, s, m);
    if (op != Op::Forward && !made(Op::Forward, s, m)) return false;
    return std::ranges::all_of(program_.costs.pairs, [&](const StagePair& p) {
      if (op == Op::Forward) return p.to != s || made(Op::Forward, p.from, m);
      return p.from != s || !p.has_gradient || made(Op::BackwardInput, p.to, m);
    });
  }
  void order_compute() {
    const std::size_t stages = program_.placement.stages();
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t m = 0; m < microbatches_; ++m) split_[{stage(s), m}] = chance(2);
    while (true) {
      std::vector<Task> ready;
      for (const Op op : {Op::Forward, Op::BackwardInput, Op::BackwardWeight})
        for (std::size_t s = 0; s < stages; ++s)
          for (std::size_t m = 0; m < microbatches_; ++m)
            if (runnable(op, stage(s), m)) ready.emplace_back(op, stage(s), m);
      if (ready.empty()) break;
      for (const Task& task : ready) since_.try_emplace(task, done_.size());
      const Task next = ready[below(ready.size())];
      append(next);
      done_.insert(next);
    }
  }
  void append(const Task& task) {
    auto [op, s, m] = task;
    if (op == Op::BackwardInput && !split_.at({s, m})) op = Op::Backward;
    const Action action{.op = op, .stage = s, .microbatch = microbatch(m)};
    const std::size_t rank = program_.placement.rank(s).index();
    auto& row = program_.schedule.rows[rank];
    // Side by side with the cell before, if it was ready when that one ran; now and then though it
    // was not.
    if (!row.empty() && chance(4) && (since_.at(task) <= last_[rank] || chance(30))) {
      Overlap both;
      for_each_action(row.back(), [&](const Action& a) { both.parts.push_back(a); });
      both.parts.push_back(action);
      row.back() = both;
    } else {
      row.emplace_back(action);
      last_[rank] = done_.size();
    }
  }

  /// As the families are lowered; a program that can never run stays without help.
  void lower_it() {
    const TransferOrder order = chance(2) ? TransferOrder::Ready : TransferOrder::Torch;
    try {
      program_.schedule =
          lower(program_.schedule, program_.costs, program_.placement,
                {.transfers = order, .reduce_grad = ReduceGrad::None, .optimizer_step = false});
    } catch (const ConfigError&) {
      add_transfers();
    }
  }

  // --- transfers: SEND anywhere behind its maker, RECV anywhere before its user
  void add_transfers() {
    for (const StagePair& pair : program_.costs.pairs) {
      if (program_.placement.rank(pair.from) == program_.placement.rank(pair.to)) continue;
      for (std::size_t m = 0; m < microbatches_; ++m) {
        move(pair.from, pair.to, m, Direction::Forward);
        if (pair.has_gradient) move(pair.to, pair.from, m, Direction::Backward);
      }
    }
  }
  void move(StageId from, StageId to, std::size_t m, Direction direction) {
    auto& sender = program_.schedule.rows[program_.placement.rank(from).index()];
    const std::size_t made = position(sender, from, m, direction);
    const std::size_t late = chance(3) ? below(sender.size() - made) : 0;
    sender.insert(sender.begin() + static_cast<std::ptrdiff_t>(made + 1 + late),
                  send(from, to, microbatch(m), direction));
    auto& receiver = program_.schedule.rows[program_.placement.rank(to).index()];
    const std::size_t used = position(receiver, to, m, direction);
    const std::size_t early = chance(3) ? below(used + 1) : 0;
    receiver.insert(receiver.begin() + static_cast<std::ptrdiff_t>(used - early),
                    recv(to, from, microbatch(m), direction));
  }
  static std::size_t position(const std::vector<Cell>& row, StageId s, std::size_t m,
                              Direction direction) {
    for (std::size_t p = 0; p < row.size(); ++p) {
      bool found = false;
      for_each_action(row[p], [&](const Action& a) {
        const bool forth = a.op == Op::Forward, back = makes_input_gradient(a.op);
        found |= a.stage == s && a.microbatch == microbatch(m) &&
                 (direction == Direction::Forward ? forth : back);
      });
      if (found) return p;
    }
    return 0;
  }

  /// Reductions behind the last backward, optimizer steps at the end or, now and then, anywhere
  /// behind it.
  void add_endings() {
    std::set<StageId> tied;
    for (const StageReduction& r : program_.costs.reductions)
      tied.insert(r.stages.begin(), r.stages.end());
    for (std::size_t s = 0; s < program_.placement.stages(); ++s) {
      auto& row = program_.schedule.rows[program_.placement.rank(stage(s)).index()];
      std::size_t last = 0;
      for (std::size_t p = 0; p < row.size(); ++p)
        for_each_action(row[p], [&](const Action& a) {
          if (a.stage == stage(s) && is_compute(a.op)) last = p;
        });
      const auto after = [&](std::size_t p) {
        return row.begin() + static_cast<std::ptrdiff_t>(p + 1);
      };
      const bool anywhere = chance(4);
      row.insert(anywhere ? after(last + below(row.size() - last)) : row.end(),
                 stage_action(Op::OptimizerStep, stage(s)));
      if (tied.contains(stage(s))) row.insert(after(last), stage_action(Op::ReduceGrad, stage(s)));
    }
  }

  /// Exchanges neighbours in a row, whatever they are.
  void disturb() {
    for (std::size_t swaps = 1 + below(2); swaps > 0; --swaps) {
      auto& row = program_.schedule.rows[below(program_.schedule.ranks())];
      if (row.size() < 2) continue;
      const std::size_t p = below(row.size() - 1);
      std::swap(row[p], row[p + 1]);
    }
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  std::size_t microbatches_ = 1;
  std::set<Task> done_;                      // B counts as I
  std::map<Task, std::size_t> since_;        // how much was done when it became ready
  std::map<std::size_t, std::size_t> last_;  // [rank] how much was done when its last cell began
  std::map<std::pair<StageId, std::size_t>, bool> split_;  // B as I and W?
};

}  // namespace

RandomProgram random_program(std::uint64_t seed) { return Maker(seed).make(); }

RandomProgram random_program_for(const StageGraph& stages, std::uint64_t seed) {
  return Maker(seed).make_for(stages);
}

}  // namespace pfeife::testing
