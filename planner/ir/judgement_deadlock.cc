// Deadlock: the rows are executed without time, and what never runs is explained by its smallest
// circle of waits.
//
// An item is a compute cell, an optimizer step, a transfer or a reduction. Items stand in lines:
// the line of a rank (what holds it, in row order) and, if transfers queue, the lines of its
// queues. An item runs once it is first in all its lines and everything it needs has run. Whatever
// is left over then waits for something left over, so there is a circle.
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/ir/judgement.h"

namespace pfeife::judgement {
namespace {

using Item = std::uint32_t;
using Line = std::uint32_t;
constexpr Item kNoItem = ~Item{0};

/// What an item does in the rows.
enum class Role { Compute, Optimizer, Transfer, Reduction };
struct Entry {
  Role role = Role::Compute;
  Place place;                    ///< of a transfer: the SEND
  std::optional<Place> received;  ///< of a transfer: the RECV
  std::vector<Line> lines;
  std::vector<Item> needs;
};

/// An item waits for another: because it needs it, or because that one is before it in a line.
struct Wait {
  Item item = 0, on = 0;
  std::optional<Line> line;
};

/// A cell that is put where another one of its row stands.
struct Move {
  Place from;
  std::uint32_t to = 0;
};

class Execution {
 public:
  Execution(const Reading& reading, const Semantics& semantics)
      : reading_(reading), semantics_(semantics) {
    lines_.resize(reading.schedule.ranks());
    for (const auto& row : reading.schedule.rows) item_at_.emplace_back(row.size(), kNoItem);
    index_edges();
    index_ties();
    add_cells();
    add_transfers();
    stand_in_line();
    add_needs();
  }

  /// Runs all that can run; true if that is everything.
  bool run() {
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

  /// The shortest circle of waits among what did not run.
  std::vector<Wait> circle() const {
    std::vector<Item> starts;
    for (Line line = 0; line < lines_.size(); ++line)
      if (first_[line] < lines_[line].size()) starts.push_back(lines_[line][first_[line]]);
    std::ranges::sort(starts);
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<Wait> best = shortest(starts);
    if (!best.empty()) return best;
    std::vector<Item> all;
    for (Item i = 0; i < items_.size(); ++i)
      if (!done_[i]) all.push_back(i);
    return shortest(all);
  }

  std::string sentence(const Wait& wait) const;
  /// Changes of a row that would open the circle.
  std::vector<Move> moves(const std::vector<Wait>& circle) const;
  Place place(Item item) const { return items_[item].place; }

 private:
  // --- building
  const Cell& cell(Place p) const { return reading_.schedule.rows[p.rank][p.position]; }

  void index_edges() {
    into_.resize(reading_.home.size());
    out_of_.resize(reading_.home.size());
    for (std::uint32_t e = 0; e < reading_.required.stages.edges.size(); ++e) {
      into_[reading_.edge(e).to.index()].push_back(e);
      out_of_[reading_.edge(e).from.index()].push_back(e);
    }
  }
  Item& item_at(Place p) { return item_at_[p.rank][p.position]; }

  /// Stages that are tied, directly or through others, reduce together.
  void index_ties() {
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

  void add_cells() {
    for (std::uint32_t r = 0; r < reading_.schedule.ranks(); ++r)
      for (std::uint32_t p = 0; p < reading_.schedule.rows[r].size(); ++p) {
        const Cell& there = cell({r, p});
        const auto* action = std::get_if<Action>(&there);
        const bool computes =
            std::holds_alternative<Overlap>(there) || (action && is_compute(action->op));
        if (computes || (action && action->op == Op::OptimizerStep)) {
          item_at({r, p}) = static_cast<Item>(items_.size());
          items_.push_back({computes ? Role::Compute : Role::Optimizer, {r, p}, {}, {}, {}});
        } else if (action && action->op == Op::ReduceGrad && tied_[action->stage.index()]) {
          const auto [at, added] = reduction_.try_emplace(group_[action->stage.index()],
                                                          static_cast<Item>(items_.size()));
          if (added) items_.push_back({Role::Reduction, {r, p}, {}, {}, {}});
          parties_.push_back({at->second, {r, p}});
        }
      }
  }

  void add_transfers() {
    for (const Passage& p : reading_.passages) {
      transfer_.push_back(static_cast<Item>(items_.size()));
      item_at(*p.sent) = item_at(*p.received) = static_cast<Item>(items_.size());
      items_.push_back({Role::Transfer, *p.sent, *p.received, {}, {}});
    }
  }

  /// The line in which a transfer stands at one of its two ranks; none if transfers do not queue.
  std::optional<Line> queue_at(std::uint32_t rank, std::uint32_t other, bool sends) {
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

  void stand_in_line() {
    for (std::uint32_t r = 0; r < item_at_.size(); ++r)
      for (std::uint32_t p = 0; p < item_at_[r].size(); ++p)
        if (item_at_[r][p] != kNoItem) stand_in_line(item_at_[r][p], {r, p});
  }
  void stand_in_line(Item item, Place place) {
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

  void need(Item item, const std::optional<Place>& place) {
    if (place) items_[item].needs.push_back(item_at(*place));
  }

  void add_needs() {
    for (std::uint32_t r = 0; r < item_at_.size(); ++r)
      for (std::uint32_t p = 0; p < item_at_[r].size(); ++p)
        if (const Item item = item_at_[r][p];
            item != kNoItem && items_[item].role != Role::Transfer)
          for_each_action(cell({r, p}), [&](const Action& a) { add_needs_of(a, item); });
    for (std::size_t i = 0; i < reading_.passages.size(); ++i) {
      const Passage& p = reading_.passages[i];
      const bool onward = p.direction == Direction::Forward;
      const StageGraph::Edge& edge = reading_.edge(p.edge);
      const Life* maker = reading_.life((onward ? edge.from : edge.to).index(), p.microbatch);
      need(transfer_[i], onward ? maker->forward : maker->gradient());
    }
    for (const auto& [reduction, place] : parties_) {  // the last item that holds the rank before
      for (std::uint32_t p = place.position; p-- > 0;) {
        const Item item = item_at_[place.rank][p];
        if (item == kNoItem || (items_[item].role == Role::Transfer && !semantics_.blocking))
          continue;
        items_[reduction].needs.push_back(item);
        break;
      }
    }
  }

  void add_needs_of(const Action& a, Item item) {
    if (a.op == Op::OptimizerStep) {
      const auto at = reduction_.find(group_[a.stage.index()]);
      if (at != reduction_.end() && tied_[a.stage.index()])
        items_[item].needs.push_back(at->second);
      return;
    }
    const Life* life = reading_.life(a.stage.index(), a.microbatch->index());
    if (a.op == Op::BackwardWeight) return need(item, life->backward_input);
    if (a.op != Op::Forward) need(item, life->forward);
    if (a.op == Op::Forward) {
      for (const std::uint32_t e : into_[a.stage.index()])
        need_value(item, e, Direction::Forward, *a.microbatch);
    } else {
      for (const std::uint32_t e : out_of_[a.stage.index()])
        if (reading_.edge(e).gradient) need_value(item, e, Direction::Backward, *a.microbatch);
    }
  }
  void need_value(Item item, std::uint32_t e, Direction direction, MicrobatchId m) {
    const StageGraph::Edge& edge = reading_.edge(e);
    const bool onward = direction == Direction::Forward;
    if (reading_.required.lowered && reading_.travels(edge)) {
      const Passage* p = reading_.passage(e, direction, m.index());
      items_[item].needs.push_back(
          transfer_[static_cast<std::size_t>(p - reading_.passages.data())]);
      return;
    }
    const Life* maker = reading_.life((onward ? edge.from : edge.to).index(), m.index());
    need(item, onward ? maker->forward : maker->gradient());
  }

  // --- running
  bool is_first(Item item) const {
    return std::ranges::all_of(items_[item].lines,
                               [&](Line line) { return lines_[line][first_[line]] == item; });
  }
  void finish(Item item, std::deque<Item>& candidates) {
    done_[item] = true;
    for (const Item user : users_[item])
      if (--missing_[user] == 0) candidates.push_back(user);
    for (const Line line : items_[item].lines)
      if (++first_[line] < lines_[line].size()) candidates.push_back(lines_[line][first_[line]]);
  }

  // --- explaining
  std::vector<Wait> waits_of(Item item) const {
    std::vector<Wait> waits;
    for (const Item needed : items_[item].needs)
      if (!done_[needed]) waits.push_back({item, needed, std::nullopt});
    for (const Line line : items_[item].lines)
      if (const Item head = lines_[line][first_[line]]; head != item)
        waits.push_back({item, head, line});
    return waits;
  }

  /// Breadth-first search from each start back to itself.
  std::vector<Wait> shortest(const std::vector<Item>& starts) const {
    std::vector<Wait> best;
    for (const Item start : starts) {
      std::map<Item, Wait> reached;  // how each item was reached first
      std::deque<Item> queue{start};
      while (!queue.empty() && !reached.contains(start)) {
        const Item item = queue.front();
        queue.pop_front();
        for (const Wait& wait : waits_of(item))
          if (reached.try_emplace(wait.on, wait).second) queue.push_back(wait.on);
      }
      if (!reached.contains(start)) continue;
      std::vector<Wait> circle{reached.at(start)};
      while (circle.back().item != start) circle.push_back(reached.at(circle.back().item));
      std::ranges::reverse(circle);
      if (best.empty() || circle.size() < best.size()) best = std::move(circle);
      if (best.size() == 1) break;
    }
    return best;
  }

  std::string cell_text(Item item) const { return to_string(cell(items_[item].place)); }
  /// The item as it stands in a rank's row.
  Place place_at(Item item, std::uint32_t rank) const {
    const Entry& entry = items_[item];
    return entry.received && entry.received->rank == rank ? *entry.received : entry.place;
  }
  std::string text_at(Item item, std::uint32_t rank) const {
    return to_string(cell(place_at(item, rank)));
  }
  /// What a transfer carries: the action that made it.
  std::string cargo(Item item) const {
    const Action& sent = std::get<Action>(cell(items_[item].place));
    return to_string(sent.stage) + (sent.direction == Direction::Forward ? "F" : "B") +
           to_string(*sent.microbatch);
  }
  std::string rank_text(std::uint32_t rank) const { return "rank " + std::to_string(rank); }
  std::uint32_t owner(Line line) const {
    if (line < reading_.schedule.ranks()) return line;
    for (const auto& [name, queue] : queue_)
      if (queue == line) return std::get<0>(name);
    return 0;
  }

  const Reading& reading_;
  const Semantics& semantics_;
  std::vector<Entry> items_;
  std::vector<std::vector<Item>> lines_;                   // the first ones are the ranks'
  std::vector<std::vector<Item>> item_at_;                 // [rank][position]
  std::vector<std::vector<std::uint32_t>> into_, out_of_;  // [stage] edges
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, Line> queue_;
  std::vector<Item> transfer_;                   // [passage]
  std::map<std::uint32_t, Item> reduction_;      // [group]
  std::vector<std::pair<Item, Place>> parties_;  // reduction, its REDUCE_GRAD
  std::vector<std::uint32_t> group_;             // [stage]
  std::vector<bool> tied_;                       // [stage]
  std::vector<std::vector<Item>> users_;
  std::vector<std::size_t> missing_,
      first_;  // [item] needs that have not run; [line] its first item
  std::vector<bool> done_;
};

std::string Execution::sentence(const Wait& wait) const {
  const Entry& entry = items_[wait.item];
  const Entry& other = items_[wait.on];
  const std::uint32_t rank = entry.place.rank;
  if (entry.role == Role::Reduction)
    return "the reduction of " + cell_text(wait.item) + " waits for " +
           text_at(wait.on, other.place.rank) + " on " + rank_text(other.place.rank);
  if (entry.role == Role::Transfer) {
    const std::uint32_t receiver = entry.received->rank;
    const std::string moves = cargo(wait.item) + " to " + rank_text(receiver);
    if (!wait.line)
      return rank_text(rank) + " waits to send " + moves + " until " + text_at(wait.on, rank) +
             " is done";
    const std::uint32_t at = owner(*wait.line);
    const std::string before =
        text_at(wait.on, at) +
        (other.role == Role::Transfer ? ", which comes before " : " before ") +
        text_at(wait.item, at) + (semantics_.blocking ? " in its row" : " in its queue");
    if (at == receiver)
      return rank_text(rank) + " waits to send " + moves + ", but " + rank_text(at) + " is at " +
             before;
    return rank_text(receiver) + " waits to receive " + cargo(wait.item) + " from " +
           rank_text(rank) + ", but " + rank_text(at) + " is at " + before;
  }
  const std::string who = rank_text(rank) + " waits at " + cell_text(wait.item) + " ";
  if (wait.line) return who + "for " + text_at(wait.on, rank) + " before it";
  if (other.role == Role::Transfer)
    return who + "for " + cargo(wait.on) + " from " + rank_text(other.place.rank);
  if (other.role == Role::Reduction) return who + "for the reduction of " + cell_text(wait.on);
  if (other.place.rank == rank)
    return who + "for " + cell_text(wait.on) + ", which comes later in its row";
  return who + "for " + cell_text(wait.on) + " of " + rank_text(other.place.rank);
}

std::vector<Move> Execution::moves(const std::vector<Wait>& circle) const {
  std::vector<Move> found;
  for (const Wait& wait : circle) {
    if (!wait.line) continue;
    const std::uint32_t rank = owner(*wait.line);
    const Place late = place_at(wait.item, rank), early = place_at(wait.on, rank);
    found.push_back({late, early.position});  // the one that waits goes up
    found.push_back({early, late.position});  // the one before it goes down
  }
  return found;
}

/// A cell of a row taken out and put where another one stands.
Schedule moved(const Schedule& schedule, const Move& move) {
  Schedule result = schedule;
  auto& row = result.rows[move.from.rank];
  const auto first = row.begin() + move.from.position, to = row.begin() + move.to;
  if (first < to)
    std::rotate(first, first + 1, to + 1);
  else
    std::rotate(to, first, first + 1);
  return result;
}

/// The first of the moves that leaves nothing to complain about, in words; "" if there is none.
std::string remedy(const Reading& reading, const Semantics& semantics,
                   const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    const Schedule changed = moved(reading.schedule, move);
    Findings findings;
    const Reading again = read(changed, reading.required, findings);
    judge_lives(again, findings);
    if (reading.required.lowered) judge_transfers(again, findings);
    if (findings.hangs() || !Execution(again, semantics).run()) continue;
    const auto& row = reading.schedule.rows[move.from.rank];
    return "; move " + to_string(row[move.from.position]) +
           (move.to < move.from.position ? " before " : " behind ") + to_string(row[move.to]) +
           " in the row of rank " + std::to_string(move.from.rank);
  }
  return "";
}

std::string setting(const Semantics& semantics) {
  if (semantics.blocking) return "blocking SEND and RECV";
  return semantics.queues == Queues::None ? "free transfers"
                                          : to_string(semantics.queues) + " queues";
}

}  // namespace

void judge_deadlock(const Reading& reading, const Semantics& semantics, Findings& findings) {
  Execution execution(reading, semantics);
  if (execution.run()) return;
  const std::vector<Wait> circle = execution.circle();
  std::string message = "deadlock";
  if (reading.required.lowered) message += " with " + setting(semantics);
  Place first = execution.place(circle.front().item);
  for (std::size_t i = 0; i < circle.size(); ++i) {
    message += (i == 0 ? ": " : "; ") + execution.sentence(circle[i]);
    first = std::min(first, execution.place(circle[i].item));
  }
  findings.add(first, message + remedy(reading, semantics, execution.moves(circle)));
}

}  // namespace pfeife::judgement
