#include "planner/search/bound/round_rows.h"

#include <algorithm>
#include <limits>

#include "planner/search/bound/stage_bound.h"

namespace pfeife {
namespace {

/// What a rank does of one of its stages in a part of its row.
struct Own {
  double forward = 0, input = 0, weight = 0;
};
using Part = std::array<Own, 2>;  // [round]

struct Step {
  Op op;
  std::size_t round;
  MicrobatchId microbatch;
  bool returns() const { return op == Op::Backward || op == Op::BackwardInput; }
};

/// A rank's row, and where in it the second round begins, turns, has its last F and ends, and the
/// first one ends.
struct RankRow {
  std::vector<Step> steps;
  std::size_t begin = 0, turn = 0, pass = 0, end = 0, leave = 0;

  Part part(std::size_t from, std::size_t to) const {
    Part found;
    for (std::size_t k = from; k < to; ++k) {
      Own& own = found[steps[k].round];
      own.forward += steps[k].op == Op::Forward;
      own.input += steps[k].returns();
      own.weight += steps[k].op == Op::Backward || steps[k].op == Op::BackwardWeight;
    }
    return found;
  }
};

bool dealt_in_two_rounds(const Placement& placement) {
  const std::size_t ranks = placement.ranks();
  if (placement.stages() != 2 * ranks) return false;
  for (std::size_t s = 0; s < placement.stages(); ++s)
    if (placement.rank_of_stage[s].index() != s % ranks) return false;
  return true;
}

RankRow rank_row(const Schedule& schedule, std::size_t rank) {
  RankRow row;
  for (const Cell& cell : schedule.rows[rank])
    for_each_action(cell, [&](const Action& a) {
      row.steps.push_back({a.op, a.stage.index() == rank ? 0u : 1u, *a.microbatch});
    });
  const auto forward = [](const Step& s) { return s.op == Op::Forward && s.round == 1; };
  const auto back = [](const Step& s) { return s.returns() && s.round == 1; };
  const auto place = [&](auto at) { return static_cast<std::size_t>(at - row.steps.begin()); };
  row.begin = place(std::ranges::find_if(row.steps, forward));
  row.turn = place(std::ranges::find_if(row.steps, back));
  for (std::size_t k = 0; k < row.steps.size(); ++k)
    if (forward(row.steps[k]))
      row.pass = k;
    else if (row.steps[k].returns())
      (row.steps[k].round == 1 ? row.end : row.leave) = k + 1;
  return row;
}

/// The ways between ranks are those of the same microbatch.
bool in_step(const std::vector<RankRow>& rows) {
  const auto microbatch = [](const RankRow& row, std::size_t step) {
    return row.steps[step].microbatch;
  };
  const MicrobatchId first = microbatch(rows[0], rows[0].begin),
                     passes = microbatch(rows[0], rows[0].pass),
                     last = microbatch(rows[0], rows[0].end - 1);
  return std::ranges::all_of(rows, [&](const RankRow& row) {
    return microbatch(row, row.begin) == first && microbatch(row, row.turn) == first &&
           microbatch(row, row.pass) == passes && microbatch(row, row.end - 1) == last;
  });
}

std::vector<RankRow> rank_rows(const Schedule& schedule) {
  std::vector<RankRow> rows;
  for (std::size_t r = 0; r < schedule.ranks(); ++r) rows.push_back(rank_row(schedule, r));
  return rows;
}

class RowMaker {
 public:
  explicit RowMaker(const Candidates& candidates)
      : candidates_(candidates),
        model_(candidates.model()),
        onward_(fastest_times(model_, candidates.costs(), Work::Forward)),
        back_(fastest_times(model_, candidates.costs(), Work::BackwardInput)) {}

  RoundRows rows(std::size_t rank, const RankRow& row) const {
    const std::size_t size = row.steps.size();
    RoundRows made{sum(rank, row.part(0, row.begin), false),
                   sum(rank, row.part(row.begin, row.end), false),
                   sum(rank, row.part(row.turn, row.end), false),
                   sum(rank, row.part(row.end, size), true),
                   sum(rank, row.part(row.end, row.leave), false),
                   sum(rank, row.part(0, size), true),
                   sum(rank, row.part(row.begin, row.pass), false),
                   sum(rank, row.part(row.pass, size), true),
                   sum(rank, row.part(row.pass, row.end), false),
                   {}};
    made.delay.add_before(0, onward_, 1), made.delay.add_before(1, onward_, -1);
    made.second.add_before(1, onward_, 1), made.second.add_before(1, back_, 1);
    made.turned.add(onward_.back() + back_.back());
    made.turned.add_until(1, back_, -1), made.turned.add_before(1, back_, 1);
    made.after.add_before(1, back_, -1);
    made.leaving.add_before(1, back_, -1), made.leaving.add_before(0, back_, 1);
    made.all.add_before(0, onward_, 1);
    made.rest.add_before(1, onward_, 1);
    made.again.add_before(1, onward_, 1), made.again.add_before(1, back_, 1);
    made.held = held(rank);
    return made;
  }

 private:
  RoundRow sum(std::size_t rank, const Part& part, bool to_the_end) const {
    RoundRow row(onward_.size());
    for (std::size_t round = 0; round < 2; ++round) {
      const std::size_t kind =
          candidates_.costs().kind(rank + round * candidates_.placement().ranks());
      row.add(round, model_.time(kind, Work::Forward), part[round].forward);
      row.add(round, model_.time(kind, Work::BackwardInput), part[round].input);
      row.add(round, model_.time(kind, Work::BackwardWeight), part[round].weight);
      row.add(round, model_.time(kind, Work::Optimizer), to_the_end);
    }
    return row;
  }

  /// At the moments with most in flight of one round, or of both; temporaries left out.
  std::vector<RoundRow> held(std::size_t rank) const {
    const auto& moments = candidates_.live().moments(rank);
    std::vector<const LiveMoment*> fullest;
    const auto note = [&](const auto& amount) {
      if (moments.empty()) return;
      const LiveMoment* const most = &*std::ranges::max_element(moments, {}, amount);
      if (std::ranges::find(fullest, most) == fullest.end()) fullest.push_back(most);
    };
    note([](const LiveMoment& m) { return m.saved[0]; });
    note([](const LiveMoment& m) { return m.saved[1]; });
    note([](const LiveMoment& m) { return m.saved[0] + m.saved[1]; });
    note([](const LiveMoment& m) { return m.saved[0] + m.weight_saved[0]; });
    note([](const LiveMoment& m) { return m.saved[1] + m.weight_saved[1]; });
    std::vector<RoundRow> found;
    for (const LiveMoment* moment : fullest) {
      RoundRow& row = found.emplace_back(onward_.size());
      for (std::size_t round = 0; round < 2; ++round) {
        row.add(round, model_.held(Hold::Fixed), 1);
        row.add(round, model_.held(Hold::Saved), moment->saved[round]);
        row.add(round, model_.held(Hold::WeightSaved), moment->weight_saved[round]);
      }
    }
    return found;
  }

  const Candidates& candidates_;
  const CutModel& model_;
  std::vector<double> onward_, back_;  // [position]
};

}  // namespace

RoundRow::RoundRow(std::size_t positions) {
  for (auto* sums : {&begin_, &end_})
    for (auto& of_round : *sums) of_round.assign(positions, 0.0);
}
void RoundRow::add(std::size_t round, const std::vector<double>& prefix, double count) {
  add_before(round, prefix, -count), add_until(round, prefix, count);
}
void RoundRow::add_before(std::size_t round, const std::vector<double>& prefix, double count) {
  for (std::size_t p = 0; p < prefix.size(); ++p) begin_[round][p] += count * prefix[p];
}
void RoundRow::add_until(std::size_t round, const std::vector<double>& prefix, double count) {
  for (std::size_t p = 0; p < prefix.size(); ++p) end_[round][p] += count * prefix[p];
}
void RoundRow::add(double constant) {
  for (double& value : begin_[0]) value += constant;
}

std::optional<std::vector<RoundRows>> round_rows(const Candidates& candidates) {
  if (!dealt_in_two_rounds(candidates.placement())) return std::nullopt;
  const std::vector<RankRow> rows = rank_rows(candidates.schedule());
  if (!in_step(rows)) return std::nullopt;
  const RowMaker maker(candidates);
  std::vector<RoundRows> found;
  for (std::size_t r = 0; r < rows.size(); ++r) found.push_back(maker.rows(r, rows[r]));
  return found;
}

std::vector<double> least_second(const Candidates& candidates) {
  const CutModel& model = candidates.model();
  Own least{std::numeric_limits<double>::infinity(), least.forward, least.forward};
  for (const RankRow& row : rank_rows(candidates.schedule())) {
    const Own own = row.part(row.begin, row.end)[1];
    least.forward = std::min(least.forward, own.forward);
    least.input = std::min(least.input, own.input);
    least.weight = std::min(least.weight, own.weight);
  }
  const auto onward = fastest_times(model, candidates.costs(), Work::Forward),
             back = fastest_times(model, candidates.costs(), Work::BackwardInput),
             weight = fastest_times(model, candidates.costs(), Work::BackwardWeight);
  std::vector<double> found(onward.size(), 0.0);
  for (std::size_t p = found.size() - 1; p-- > 0;)
    found[p] =
        std::max(found[p + 1], onward[p] + back[p] + least.forward * (onward[p + 1] - onward[p]) +
                                   least.input * (back[p + 1] - back[p]) +
                                   least.weight * (weight[p + 1] - weight[p]));
  return found;
}

}  // namespace pfeife
