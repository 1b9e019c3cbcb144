#include <algorithm>
#include <numeric>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

constexpr Item kNoItem = ~Item{0};

}  // namespace

Execution::Execution(const Reading& reading, const Semantics& semantics)
    : reading_(reading), semantics_(semantics) {
  lines_.resize(reading.schedule.ranks());
  for (const auto& row : reading.schedule.rows) item_at_.emplace_back(row.size(), kNoItem);
  index_edges();
  index_ties();
  add_cells();
  add_transfers();
  add_reductions();
  stand_in_line();
  add_needs();
}

bool Execution::run() {
  users_.resize(items_.size());
  missing_.resize(items_.size());
  for (Item i = 0; i < items_.size(); ++i) {
    missing_[i] = items_[i].needs.size();
    for (const Item needed : items_[i].needs) users_[needed].push_back(i);
  }
  done_.assign(items_.size(), false);
  first_.assign(lines_.size(), 0);
  std::deque<Item> candidates(items_.size());
  std::iota(candidates.begin(), candidates.end(), Item{0});
  while (!candidates.empty()) {
    const Item item = candidates.front();
    candidates.pop_front();
    if (!done_[item] && missing_[item] == 0 && is_first(item)) finish(item, candidates);
  }
  return std::ranges::count(done_, false) == 0;
}

void Execution::index_edges() {
  into_.resize(reading_.home.size());
  out_of_.resize(reading_.home.size());
  for (std::uint32_t e = 0; e < reading_.required.stages.edges.size(); ++e) {
    into_[reading_.edge(e).to.index()].push_back(e);
    out_of_[reading_.edge(e).from.index()].push_back(e);
  }
}

/// Stages that are tied, directly or through others, reduce together.
void Execution::index_ties() {
  group_.resize(reading_.home.size());
  std::iota(group_.begin(), group_.end(), 0u);
  const auto root = [&](std::size_t s) {
    while (group_[s] != s) s = group_[s];
    return s;
  };
  for (const auto& tie : reading_.required.stages.tied)
    for (const StageId s : tie) {
      const std::size_t a = root(tie.front().index()), b = root(s.index());
      group_[std::max(a, b)] = static_cast<std::uint32_t>(std::min(a, b));
    }
  for (std::uint32_t& g : group_) g = static_cast<std::uint32_t>(root(g));
  tied_.assign(group_.size(), false);
  for (const auto& tie : reading_.required.stages.tied)
    for (const StageId s : tie) tied_[s.index()] = true;
}

void Execution::add_reductions() {
  for (const auto& [group, item] : reduction_) {
    std::map<std::uint32_t, Place> last;  // [rank]
    for (const Place party : items_[item].parties) last[party.rank] = party;
    if (semantics_.blocking)
      for (const auto& [rank, place] : last) item_at(place) = item;
  }
  if (norm_ && semantics_.blocking)
    for (const Place party : items_[*norm_].parties) item_at(party) = *norm_;
}

void Execution::add_cells() {
  for (std::uint32_t r = 0; r < reading_.schedule.ranks(); ++r)
    for (std::uint32_t p = 0; p < reading_.schedule.rows[r].size(); ++p) {
      const Cell& there = cell({r, p});
      const auto* action = std::get_if<Action>(&there);
      const bool computes =
          std::holds_alternative<Overlap>(there) || (action && is_compute(action->op));
      if (computes || (action && action->op == Op::OptimizerStep)) {
        item_at({r, p}) = static_cast<Item>(items_.size());
        items_.push_back({computes ? Role::Compute : Role::Optimizer, {r, p}, {}, {}, {}, {}});
      } else if (action && action->op == Op::ReduceGrad && tied_[action->stage.index()]) {
        const auto [at, added] =
            reduction_.try_emplace(group_[action->stage.index()], static_cast<Item>(items_.size()));
        if (added) items_.push_back({Role::Reduction, {r, p}, {}, {}, {}, {}});
        items_[at->second].parties.push_back({r, p});
      } else if (action && action->op == Op::ReduceNorm) {
        if (!norm_) {
          norm_ = static_cast<Item>(items_.size());
          items_.push_back({Role::Reduction, {r, p}, {}, {}, {}, {}});
        }
        items_[*norm_].parties.push_back({r, p});
      }
    }
}

void Execution::add_transfers() {
  for (const Passage& p : reading_.passages) {
    transfer_.push_back(static_cast<Item>(items_.size()));
    item_at(*p.sent) = item_at(*p.received) = static_cast<Item>(items_.size());
    items_.push_back({Role::Transfer, *p.sent, *p.received, {}, {}, {}});
  }
}

/// The line in which a transfer stands at one of its two ranks; none if transfers do not queue.
std::optional<Line> Execution::queue_at(std::uint32_t rank, std::uint32_t other, bool sends) {
  if (semantics_.blocking) return Line{rank};
  std::tuple<std::uint32_t, std::uint32_t, bool> name{rank, other, sends};
  switch (semantics_.queues) {
    case Queues::None:
      return std::nullopt;
    case Queues::Edge:
      break;
    case Queues::Pair:
      name = {rank, other, false};
      break;
    case Queues::Rank:
      name = {rank, rank, false};
      break;
  }
  const auto [at, added] = queue_.try_emplace(name, static_cast<Line>(lines_.size()));
  if (added) lines_.emplace_back();
  return at->second;
}

void Execution::stand_in_line() {
  for (std::uint32_t r = 0; r < item_at_.size(); ++r)
    for (std::uint32_t p = 0; p < item_at_[r].size(); ++p)
      if (item_at_[r][p] != kNoItem) stand_in_line(item_at_[r][p], {r, p});
}

void Execution::stand_in_line(Item item, Place place) {
  Entry& entry = items_[item];
  std::optional<Line> line = Line{place.rank};
  if (entry.role == Role::Transfer) {
    const bool sends = place == entry.place;
    line = queue_at(place.rank, sends ? entry.received->rank : entry.place.rank, sends);
  }
  if (!line) return;
  lines_[*line].push_back(item);
  entry.lines.push_back(*line);
}

void Execution::need(Item item, const std::optional<Place>& place) {
  if (place) items_[item].needs.push_back(item_at(*place));
}

void Execution::add_needs() {
  for (std::uint32_t r = 0; r < item_at_.size(); ++r)
    for (std::uint32_t p = 0; p < item_at_[r].size(); ++p)
      if (const Item item = item_at_[r][p];
          item != kNoItem &&
          (items_[item].role == Role::Compute || items_[item].role == Role::Optimizer))
        for_each_action(cell({r, p}), [&](const Action& a) { add_needs_of(a, item); });
  for (std::size_t i = 0; i < reading_.passages.size(); ++i) {
    const Passage& p = reading_.passages[i];
    const bool onward = p.direction == Direction::Forward;
    const StageGraph::Edge& edge = reading_.edge(p.edge);
    const Life* maker = reading_.life((onward ? edge.from : edge.to).index(), p.microbatch);
    need(transfer_[i], onward ? maker->forward : maker->gradient());
  }
  for (const auto& [group, item] : reduction_)
    for (const Place party : items_[item].parties) {
      std::optional<Place> last;  // weight gradient of the stage
      for (const Life& life : reading_.lives_of(std::get<Action>(cell(party)).stage.index()))
        last = std::max(last, life.last());
      need(item, last);
    }
  if (norm_) add_needs_of_norm();
}

/// Everything of every rank that makes or adds up gradients.
void Execution::add_needs_of_norm() {
  for (std::size_t s = 0; s < reading_.home.size(); ++s) {
    std::optional<Place> last;
    for (const Life& life : reading_.lives_of(s)) last = std::max(last, life.last());
    need(*norm_, last);
  }
  for (const auto& [group, item] : reduction_) items_[*norm_].needs.push_back(item);
}

void Execution::add_needs_of(const Action& a, Item item) {
  if (a.op == Op::OptimizerStep) {
    const auto at = reduction_.find(group_[a.stage.index()]);
    if (at != reduction_.end() && tied_[a.stage.index()]) items_[item].needs.push_back(at->second);
    if (norm_) items_[item].needs.push_back(*norm_);
    return;
  }
  const Life* life = reading_.life(a.stage.index(), a.microbatch->index());
  if (a.op == Op::BackwardWeight) return need(item, life->backward_input);
  const std::size_t last = reading_.home.size() - 1;
  if (a.op == Op::HeadShare) return need(item, reading_.life(last, a.microbatch->index())->forward);
  if (a.op == Op::HeadRest) return need_of_all(item, *a.microbatch, &Life::share);
  if (a.op != Op::Forward && a.stage.index() == last && reading_.required.stages.head_barriers > 0)
    need_of_all(item, *a.microbatch,
                reading_.required.stages.head_barriers == 1 ? &Life::share : &Life::rest);
  if (a.op != Op::Forward) need(item, life->forward);
  if (a.op == Op::Forward) {
    for (const std::uint32_t e : into_[a.stage.index()])
      need_value(item, e, Direction::Forward, *a.microbatch);
  } else {
    for (const std::uint32_t e : out_of_[a.stage.index()])
      if (reading_.edge(e).gradient) need_value(item, e, Direction::Backward, *a.microbatch);
  }
}

/// The item waits for what every stage does with the microbatch.
void Execution::need_of_all(Item item, MicrobatchId m, std::optional<Place> Life::*what) {
  for (std::size_t s = 0; s < reading_.home.size(); ++s)
    need(item, reading_.life(s, m.index())->*what);
}

void Execution::need_value(Item item, std::uint32_t e, Direction direction, MicrobatchId m) {
  const StageGraph::Edge& edge = reading_.edge(e);
  const bool onward = direction == Direction::Forward;
  if (reading_.required.lowered && reading_.travels(edge)) {
    const Passage* p = reading_.passage(e, direction, m.index());
    items_[item].needs.push_back(transfer_[static_cast<std::size_t>(p - reading_.passages.data())]);
    return;
  }
  const Life* maker = reading_.life((onward ? edge.from : edge.to).index(), m.index());
  need(item, onward ? maker->forward : maker->gradient());
}

bool Execution::is_first(Item item) const {
  return std::ranges::all_of(items_[item].lines,
                             [&](Line line) { return lines_[line][first_[line]] == item; });
}

void Execution::finish(Item item, std::deque<Item>& candidates) {
  done_[item] = true;
  for (const Item user : users_[item])
    if (--missing_[user] == 0) candidates.push_back(user);
  for (const Line line : items_[item].lines)
    if (++first_[line] < lines_[line].size()) candidates.push_back(lines_[line][first_[line]]);
}

std::uint32_t Execution::owner(Line line) const {
  if (line < reading_.schedule.ranks()) return line;
  for (const auto& [name, queue] : queue_)
    if (queue == line) return std::get<0>(name);
  return 0;
}

}  // namespace pfeife::judgement
