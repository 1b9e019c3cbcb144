// Reading the rows into tables sorted by what the actions do.
#include <algorithm>

#include "planner/ir/judge/judgement.h"

namespace pfeife::judgement {
namespace {

/// An action in range, with the key of the table it belongs to.
struct Occurrence {
  std::uint32_t first = 0;   // stage, or edge and direction
  std::uint32_t second = 0;  // microbatch
  Op op = Op::Forward;
  Place place;
  friend auto operator<=>(const Occurrence&, const Occurrence&) = default;
};

class Reader {
 public:
  Reader(const Schedule& schedule, const Requirements& required, Findings& findings)
      : reading_{schedule, required, {}, {}, {}, {}}, findings_(findings) {
    reading_.home.resize(required.stages.stages);
    reading_.scattered.assign(required.stages.stages, false);
  }

  Reading read() {
    for (std::uint32_t r = 0; r < reading_.schedule.ranks(); ++r)
      for (std::uint32_t p = 0; p < reading_.schedule.rows[r].size(); ++p) read_cell({r, p});
    judge_homes();
    fill_lives();
    fill_passages();
    return std::move(reading_);
  }

 private:
  void read_cell(Place place) {
    const Cell& cell = reading_.schedule.rows[place.rank][place.position];
    if (std::holds_alternative<std::monostate>(cell) && reading_.required.lowered)
      findings_.add(place, "an idle cell has no meaning in a schedule with transfers", false);
    for_each_action(cell, [&](const Action& action) { read_action(action, place); });
  }

  void read_action(const Action& a, Place place) {
    if (is_head_collective(a.op))
      return findings_.add(place,
                           to_string(a) + " is what S and T of all ranks imply; no row names it");
    if (!in_range(a, place)) return;
    if (is_copy(a.op)) return read_copy(a, place);
    auto& home = reading_.home[a.stage.index()];
    if (!home) home = place.rank;
    if (*home != place.rank)
      away_.push_back({static_cast<std::uint32_t>(a.stage.value), 0, a.op, place});
    if (is_compute(a.op))
      computed_.push_back({static_cast<std::uint32_t>(a.stage.value),
                           static_cast<std::uint32_t>(a.microbatch->value), a.op, place});
    else if (is_transfer(a.op))
      read_transfer(a, place);
  }

  bool in_range(const Action& a, Place place) {
    const Requirements& required = reading_.required;
    const bool needs_microbatch = is_compute(a.op) || is_transfer(a.op) || is_copy(a.op);
    if (a.stage.value < 0 || a.stage.index() >= required.stages.stages)
      findings_.add(place, to_string(a) + ": there is no stage " + to_string(a.stage) + ", only " +
                               std::to_string(required.stages.stages));
    else if (needs_microbatch != a.microbatch.has_value() ||
             is_transfer(a.op) != a.peer.has_value())
      findings_.add(place, to_string(a) + " is not a whole action");
    else if (needs_microbatch && static_cast<std::size_t>(a.microbatch->slices) != required.slices)
      findings_.add(place, to_string(a) +
                               (a.microbatch->slices == 1
                                    ? " names no slice"
                                    : " names a slice of " + of_slices(a.microbatch->slices)) +
                               ", but each microbatch has " + of_slices(required.slices));
    else if (needs_microbatch &&
             (a.microbatch->value < 0 || a.microbatch->index() >= required.microbatches))
      findings_.add(place, to_string(a) + ": there is no microbatch " +
                               std::to_string(a.microbatch->microbatch()) + ", only " +
                               std::to_string(required.microbatches / required.slices));
    else
      return true;
    return false;
  }

  template <std::integral Count>
  static std::string of_slices(Count slices) {
    return std::to_string(slices) + (slices == 1 ? " slice" : " slices");
  }

  void read_copy(const Action& a, Place place) {
    const Requirements& required = reading_.required;
    if (!required.lowered)
      findings_.add(place, to_string(a) + " is a copy, but the schedule is to be compute-only");
    else if (required.stages.mode == Mode::Forward)
      findings_.add(place, to_string(a) +
                               ": where training.mode is forward, nothing is saved that "
                               "could be offloaded");
    else
      copied_.push_back({static_cast<std::uint32_t>(a.stage.value),
                         static_cast<std::uint32_t>(a.microbatch->value), a.op, place});
  }

  void read_transfer(const Action& a, Place place) {
    if (!reading_.required.lowered)
      return findings_.add(place,
                           to_string(a) + " is a transfer, but the schedule is to be compute-only");
    const bool from_here = (a.op == Op::Send) == (a.direction == Direction::Forward);
    const StageId from = from_here ? a.stage : *a.peer, to = from_here ? *a.peer : a.stage;
    const auto& edges = reading_.required.stages.edges;
    const auto at =
        std::ranges::lower_bound(edges, std::pair{from, to}, {}, [](const StageGraph::Edge& e) {
          return std::pair{e.from, e.to};
        });
    if (at == edges.end() || at->from != from || at->to != to)
      return findings_.add(place, to_string(a) + ": stage " + to_string(to) +
                                      " does not read from stage " + to_string(from));
    if (a.direction == Direction::Backward && !at->gradient)
      return findings_.add(place, to_string(a) + ": no gradient goes from stage " + to_string(to) +
                                      " to stage " + to_string(from));
    const auto edge = static_cast<std::uint32_t>(at - edges.begin());
    moved_.push_back({edge * 2 + (a.direction == Direction::Backward ? 1 : 0),
                      static_cast<std::uint32_t>(a.microbatch->value), a.op, place});
  }

  /// A stage on a second rank: told once for each such rank.
  void judge_homes() {
    for (const Occurrence& o : copied_) {  // it is at home where the stage computes
      const auto& home = reading_.home[o.first];
      if (home && *home != o.place.rank)
        findings_.add(o.place, text_at(o) + ": stage " + std::to_string(o.first) + " is on rank " +
                                   std::to_string(*home) + "; a stage is copied by its own rank");
      else
        computed_.push_back(o);
    }
    std::ranges::sort(away_, {}, [](const Occurrence& o) { return std::tuple{o.first, o.place}; });
    for (std::size_t i = 0; i < away_.size(); ++i) {
      const Occurrence& o = away_[i];
      reading_.scattered[o.first] = true;
      if (i > 0 && away_[i - 1].first == o.first && away_[i - 1].place.rank == o.place.rank)
        continue;
      findings_.add(o.place, text_at(o) + ": stage " + std::to_string(o.first) + " is on rank " +
                                 std::to_string(*reading_.home[o.first]) +
                                 " already; a stage lives on one rank");
    }
  }
  std::string text_at(const Occurrence& o) const {
    return to_string(reading_.schedule.rows[o.place.rank][o.place.position]);
  }
  static std::string at(Place place) {
    return "rank " + std::to_string(place.rank) + ", position " + std::to_string(place.position);
  }

  void keep(std::optional<Place>& known, const Occurrence& o, const std::string& text) {
    if (known)
      findings_.add(o.place, text + " is there a second time; first at " + at(*known));
    else
      known = o.place;
  }

  void fill_lives() {
    std::ranges::sort(computed_);
    for (const Occurrence& o : computed_) {
      if (reading_.lives.empty() || reading_.lives.back().stage != o.first ||
          reading_.lives.back().microbatch != o.second)
        reading_.lives.push_back({.stage = o.first, .microbatch = o.second});
      Life& life = reading_.lives.back();
      const std::string cell = std::to_string(o.first),
                        m = to_string(reading_.microbatch(o.second));
      if (o.op == Op::Forward) keep(life.forward, o, cell + "F" + m);
      if (o.op == Op::Backward) keep(life.backward, o, cell + "B" + m);
      if (o.op == Op::BackwardInput) keep(life.backward_input, o, cell + "I" + m);
      if (o.op == Op::BackwardWeight) keep(life.backward_weight, o, cell + "W" + m);
      if (o.op == Op::Offload) keep(life.offload, o, text_at(o));
      if (o.op == Op::Reload) keep(life.reload, o, text_at(o));
      if (o.op == Op::HeadShare) keep(life.share, o, cell + "S" + m);
      if (o.op == Op::HeadRest) keep(life.rest, o, cell + "T" + m);
    }
    for (const Life& life : reading_.lives) {
      if (!life.backward) continue;
      const std::string stage = std::to_string(life.stage);
      const std::string m = to_string(reading_.microbatch(life.microbatch));
      if (life.backward_input)
        findings_.add(*life.backward_input,
                      stage + "I" + m + " repeats what " + stage + "B" + m + " does");
      if (life.backward_weight)
        findings_.add(*life.backward_weight,
                      stage + "W" + m + " repeats what " + stage + "B" + m + " does");
    }
  }

  void fill_passages() {
    std::ranges::sort(moved_);
    for (const Occurrence& o : moved_) {
      const Direction direction = o.first % 2 ? Direction::Backward : Direction::Forward;
      auto& passages = reading_.passages;
      if (passages.empty() || passages.back().edge != o.first / 2 ||
          passages.back().direction != direction || passages.back().microbatch != o.second)
        passages.push_back({o.first / 2, direction, o.second, {}, {}});
      keep(o.op == Op::Send ? passages.back().sent : passages.back().received, o, text_at(o));
    }
  }

  Reading reading_;
  Findings& findings_;
  std::vector<Occurrence> computed_, copied_, moved_, away_;
};

}  // namespace

Reading read(const Schedule& schedule, const Requirements& required, Findings& findings) {
  return Reader(schedule, required, findings).read();
}

const Life* Reading::life(std::size_t stage, std::size_t microbatch) const {
  const auto at =
      std::ranges::lower_bound(lives, std::pair{stage, microbatch}, {}, [](const Life& l) {
        return std::pair<std::size_t, std::size_t>{l.stage, l.microbatch};
      });
  return at != lives.end() && at->stage == stage && at->microbatch == microbatch ? &*at : nullptr;
}

std::span<const Life> Reading::lives_of(std::size_t stage) const {
  return {std::ranges::lower_bound(lives, stage, {}, &Life::stage),
          std::ranges::upper_bound(lives, stage, {}, &Life::stage)};
}

static std::tuple<std::size_t, Direction> way(const Passage& p) { return {p.edge, p.direction}; }

std::span<const Passage> Reading::passages_of(std::size_t edge, Direction direction) const {
  const std::tuple sought{edge, direction};
  return {std::ranges::lower_bound(passages, sought, {}, way),
          std::ranges::upper_bound(passages, sought, {}, way)};
}

const Passage* Reading::passage(std::size_t edge, Direction direction,
                                std::size_t microbatch) const {
  const auto candidates = passages_of(edge, direction);
  const auto at = std::ranges::lower_bound(candidates, microbatch, {}, &Passage::microbatch);
  return at != candidates.end() && at->microbatch == microbatch ? &*at : nullptr;
}

}  // namespace pfeife::judgement
