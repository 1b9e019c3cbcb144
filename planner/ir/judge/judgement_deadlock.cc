// Deadlock: the rows are executed without time, and what never runs is explained by its smallest
// circle of waits.
#include <algorithm>
#include <deque>
#include <map>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

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

/// Tells why an execution that has run did not finish.
class Explanation {
 public:
  Explanation(const Reading& reading, const Semantics& semantics, const Execution& execution)
      : reading_(reading), semantics_(semantics), execution_(execution) {}

  /// The shortest circle of waits among what did not run.
  std::vector<Wait> circle() const {
    std::vector<Item> starts;
    for (Line line = 0; line < execution_.lines(); ++line)
      if (const auto head = execution_.head(line)) starts.push_back(*head);
    std::ranges::sort(starts);
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    std::vector<Wait> best = shortest(starts);
    if (!best.empty()) return best;
    std::vector<Item> all;
    for (Item i = 0; i < execution_.items(); ++i)
      if (!execution_.done(i)) all.push_back(i);
    return shortest(all);
  }

  std::string sentence(const Wait& wait) const;
  /// Changes of a row that would open the circle.
  std::vector<Move> moves(const std::vector<Wait>& circle) const;

 private:
  const Cell& cell(Place p) const { return reading_.schedule.rows[p.rank][p.position]; }

  std::vector<Wait> waits_of(Item item) const {
    std::vector<Wait> waits;
    for (const Item needed : execution_.entry(item).needs)
      if (!execution_.done(needed)) waits.push_back({item, needed, std::nullopt});
    for (const Line line : execution_.entry(item).lines)
      if (const Item head = *execution_.head(line); head != item)
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

  std::string cell_text(Item item) const { return to_string(cell(execution_.entry(item).place)); }
  /// The item as it stands in a rank's row.
  Place place_at(Item item, std::uint32_t rank) const {
    const Entry& entry = execution_.entry(item);
    Place last = entry.place;  // of a reduction: where it holds the rank
    for (const Place party : entry.parties)
      if (party.rank == rank) last = party;
    if (!entry.parties.empty()) return last;
    return entry.received && entry.received->rank == rank ? *entry.received : entry.place;
  }
  std::string text_at(Item item, std::uint32_t rank) const {
    return to_string(cell(place_at(item, rank)));
  }
  /// What a transfer carries: the action that made it.
  std::string cargo(Item item) const {
    const Action& sent = std::get<Action>(cell(execution_.entry(item).place));
    return to_string(sent.stage) + (sent.direction == Direction::Forward ? "F" : "B") +
           to_string(*sent.microbatch);
  }
  std::string rank_text(std::uint32_t rank) const { return "rank " + std::to_string(rank); }

  const Reading& reading_;
  const Semantics& semantics_;
  const Execution& execution_;
};

std::string Explanation::sentence(const Wait& wait) const {
  const Entry& entry = execution_.entry(wait.item);
  const Entry& other = execution_.entry(wait.on);
  const std::uint32_t rank = entry.place.rank;
  if (entry.role == Role::Reduction) {
    const std::uint32_t at = wait.line ? execution_.owner(*wait.line) : other.place.rank;
    return "the reduction of " + text_at(wait.item, wait.line ? at : rank) + " waits for " +
           text_at(wait.on, at) + (wait.line ? " before it in the row of " : " on ") +
           rank_text(at);
  }
  if (entry.role == Role::Transfer) {
    const std::uint32_t receiver = entry.received->rank;
    const std::string moves = cargo(wait.item) + " to " + rank_text(receiver);
    if (!wait.line)
      return rank_text(rank) + " waits to send " + moves + " until " + text_at(wait.on, rank) +
             " is done";
    const std::uint32_t at = execution_.owner(*wait.line);
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

std::vector<Move> Explanation::moves(const std::vector<Wait>& circle) const {
  std::vector<Move> found;
  for (const Wait& wait : circle) {
    if (!wait.line) continue;
    const std::uint32_t rank = execution_.owner(*wait.line);
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

std::string setting(const Semantics& semantics, bool reduces) {
  if (semantics.blocking)
    return reduces ? "blocking SEND, RECV and REDUCE_GRAD" : "blocking SEND and RECV";
  return semantics.queues == Queues::None ? "free transfers"
                                          : to_string(semantics.queues) + " queues";
}

}  // namespace

void judge_deadlock(const Reading& reading, const Semantics& semantics, Findings& findings) {
  Execution execution(reading, semantics);
  if (execution.run()) return;
  const Explanation explanation(reading, semantics, execution);
  const std::vector<Wait> circle = explanation.circle();
  std::string message = "deadlock";
  const bool reduces = std::ranges::any_of(
      circle, [&](const Wait& wait) { return execution.entry(wait.item).role == Role::Reduction; });
  if (reading.required.lowered) message += " with " + setting(semantics, reduces);
  Place first = execution.entry(circle.front().item).place;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    message += (i == 0 ? ": " : "; ") + explanation.sentence(circle[i]);
    first = std::min(first, execution.entry(circle[i].item).place);
  }
  findings.add(first, message + remedy(reading, semantics, explanation.moves(circle)));
}

}  // namespace pfeife::judgement
