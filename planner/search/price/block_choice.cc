#include "planner/search/price/block_choice.h"

#include <algorithm>
#include <limits>
#include <set>

#include "planner/cost/stages/blocks.h"
#include "planner/search/price/numbers.h"

namespace pfeife {
BlockChoice::BlockChoice(const CutModel& model, const Schedule& compute_only,
                         const Placement& placement, const std::vector<Bytes>& memory_limit,
                         const std::vector<LayerRange>& blocks)
    : live_(compute_only, placement), blocks_(blocks), known_(placement.ranks()) {
  for (const Bytes limit : memory_limit) limit_.push_back(number(limit));
  const Layers& layers = model.layers();
  std::size_t covered = 0;
  for (const LayerRange& block : blocks) covered += block.last.index() - block.first.index() + 1;
  are_all_ = covered == layers.size();
  Layers bare = layers;
  for (Layer& layer : bare.layers)
    layer.name.clear(), layer.module_path.clear(), layer.ends_module.clear(),
        layer.begins_module.clear(), layer.nodes = {};
  for (LayerValue& value : bare.values) value.name.clear();
  for (LayerParameter& parameter : bare.parameters) parameter.name.clear();
  bare.notes = {}, bare.uncosted = {}, bare.node_order = {};
  layers_ = std::make_shared<const Layers>(std::move(bare));
  Cuts all;
  for (std::int32_t q = 0; q <= model.last(); ++q) all.push_back(q);
  const Partition everywhere = model.partition(all);
  for (std::size_t s = 0; s < everywhere.stages(); ++s) layer_.push_back(everywhere.begin(s));
  layer_.push_back(layers.size());
  forward_.resize(model.kinds());
  for (std::size_t kind = 0; kind < forward_.size(); ++kind) {
    forward_[kind].assign(layers.size() + 1, 0);
    for (std::size_t l = 0; l < layers.size(); ++l)
      forward_[kind][l + 1] = number(layers.layers[l].times.at(kind).forward);
    accumulate(forward_[kind]);
  }
  saved_.assign(layers.size() + 1, 0), entering_.assign(layers.size(), 0);
  for (std::size_t l = 0; l < layers.size(); ++l) saved_[l + 1] = number(layers.layers[l].saved);
  std::set<std::size_t> values;
  for (const LayerStorage& storage : layers.storages)
    if (!storage.savers.empty() && (!storage.value || values.insert(*storage.value).second))
      saved_[storage.savers.front().index() + 1] += number(storage.bytes);
  accumulate(saved_);
  for (const LayerValue& value : layers.values)
    for (LayerId l{value.producer.value + 1}; l <= value.consumers.back(); ++l.value)
      entering_[l.index()] += number(value.bytes);
}

std::vector<LayerRange> BlockChoice::all(const CutModel& model, const Cuts& cuts) const {
  return cut_blocks(blocks_, model.partition(cuts));
}

/// The blocks of a rank's stages, so many neighbours of each `together`.
std::vector<BlockChoice::Piece> BlockChoice::pieces(const std::vector<LayerRange>& blocks,
                                                    const Cuts& cuts, std::size_t rank,
                                                    const std::vector<std::size_t>& kind,
                                                    std::size_t together) const {
  std::vector<Piece> found;
  for (std::size_t at = 0; at < live_.stages(rank).size(); ++at) {
    const std::size_t s = live_.stages(rank)[at];
    const LayerRange stage{LayerId{layer_[static_cast<std::size_t>(cuts[s])]},
                           LayerId{layer_[static_cast<std::size_t>(cuts[s + 1])] - 1}};
    const auto cut = [&](LayerRange block) {
      return LayerRange{std::max(block.first, stage.first), std::min(block.last, stage.last)};
    };
    auto block = std::ranges::lower_bound(blocks, stage.first, {}, &LayerRange::last);
    while (block != blocks.end() && block->first <= stage.last) {
      LayerRange range = cut(*block++);
      for (std::size_t more = 1;
           more < together && block != blocks.end() && block->first <= stage.last &&
           block->first.value == range.last.value + 1;
           ++more)
        range.last = cut(*block++).last;
      const std::size_t first = range.first.index(), behind = range.last.index() + 1;
      const std::vector<double>& forward = forward_[kind[s]];
      const double saved = saved_[behind] - saved_[first];
      found.push_back(
          {range, at, saved - entering_[first], saved, forward[behind] - forward[first]});
    }
  }
  return found;
}

BlockChoice::Rank BlockChoice::start(const CutModel& model, const Cuts& cuts, std::size_t r) const {
  const std::size_t stages = live_.stages(r).size();
  Rank rank{{}, std::vector<double>(stages, 0), std::vector<double>(stages, 0)};
  for (const LiveMoment& moment : live_.moments(r))
    rank.kept.push_back(live_.held(model, moment, cuts, r));
  return rank;
}

double BlockChoice::held(const Rank& rank, std::size_t r, std::size_t moment) const {
  const LiveMoment& now = live_.moments(r)[moment];
  double bytes = rank.kept[moment];
  for (std::size_t at = 0; at < rank.freed.size(); ++at) bytes -= now.saved[at] * rank.freed[at];
  if (makes_input_gradient(now.op)) bytes += rank.restored[static_cast<std::size_t>(now.running)];
  return bytes;
}

std::size_t BlockChoice::fullest(const Rank& rank, std::size_t r) const {
  std::size_t most = 0;
  for (std::size_t m = 1; m < rank.kept.size(); ++m)
    if (held(rank, r, m) > held(rank, r, most)) most = m;
  return most;
}

/// Takes blocks, those first that free most at the fullest moment for their time, until the rank
/// fits; false if it does not with all that free anything.
bool BlockChoice::take(std::vector<Piece>& pieces, Rank& rank, std::size_t r, double limit) const {
  while (true) {
    const std::size_t moment = fullest(rank, r);
    if (held(rank, r, moment) <= limit) return true;
    Piece* best = nullptr;
    double best_worth = 0;
    for (Piece& piece : pieces) {
      if (piece.chosen) continue;
      const double freed = live_.moments(r)[moment].saved[piece.at] * piece.freed;
      const double worth = freed / std::max(piece.time, 1.0);
      if (worth > best_worth) best = &piece, best_worth = worth;
    }
    if (best == nullptr) return false;
    best->chosen = true;
    rank.freed[best->at] += best->freed;
    rank.restored[best->at] = std::max(rank.restored[best->at], best->restored);
  }
}

/// What is not needed after all, the longest first.
void BlockChoice::leave_out(std::vector<Piece>& pieces, Rank& rank, std::size_t r,
                            double limit) const {
  std::vector<Piece*> chosen;
  for (Piece& piece : pieces)
    if (piece.chosen) chosen.push_back(&piece);
  std::ranges::stable_sort(chosen, std::greater{}, [](const Piece* piece) { return piece->time; });
  for (Piece* const piece : chosen) {
    const Rank before = rank;
    piece->chosen = false;
    rank.freed[piece->at] -= piece->freed;
    rank.restored[piece->at] = 0;
    for (const Piece& other : pieces)
      if (other.chosen && other.at == piece->at)
        rank.restored[piece->at] = std::max(rank.restored[piece->at], other.restored);
    if (held(rank, r, fullest(rank, r)) > limit) rank = before, piece->chosen = true;
  }
}

BlockChoice::RankChoice BlockChoice::choose_rank(const CutModel& model, const Cuts& cuts,
                                                 std::size_t r,
                                                 const std::vector<std::size_t>& kind,
                                                 double limit) const {
  const Rank none = start(model, cuts, r);
  RankChoice choice{limit, {}, std::vector<double>(live_.stages(r).size(), 0)};
  choice.peak = held(none, r, fullest(none, r));
  if (choice.peak <= limit) return choice;
  Rank rank, least;
  std::vector<Piece> chosen, least_full;
  double fullest_yet = std::numeric_limits<double>::infinity();
  bool fits = false;
  for (std::size_t together = 1; !fits && together < 2 * layer_.back(); together *= 2) {
    rank = none;
    chosen = pieces(blocks_, cuts, r, kind, together);
    fits = take(chosen, rank, r, limit);
    if (fits) leave_out(chosen, rank, r, limit);
    if (const double full = held(rank, r, fullest(rank, r)); !fits && full < fullest_yet)
      fullest_yet = full, least = rank, least_full = chosen;
    if (chosen.size() <= live_.stages(r).size()) break;  // whole stages
  }
  if (!fits) rank = std::move(least), chosen = std::move(least_full), choice.fits = false;
  choice.peak = held(rank, r, fullest(rank, r));
  for (const Piece& piece : chosen) {
    if (!piece.chosen) continue;
    choice.blocks.push_back(piece.block);
    choice.again[piece.at] += piece.time;
  }
  return choice;
}

const BlockChoice::RankChoice& BlockChoice::known_choice(const CutModel& model, const Cuts& cuts,
                                                         std::size_t r,
                                                         const std::vector<std::size_t>& kind,
                                                         double limit) {
  constexpr std::uint32_t kFactor = 2654435769U;  // 2^32 / golden ratio: spreads the low bits
  ends_.clear();
  std::uint32_t hash = 0;
  for (const std::size_t s : live_.stages(r))
    for (const std::int32_t position : {cuts[s], cuts[s + 1]}) {
      ends_.push_back(position);
      hash = (hash ^ static_cast<std::uint32_t>(position)) * kFactor;
    }
  Known& known = known_[r][(hash >> 16) % known_[r].size()];
  if (known.ends != ends_ || known.choice.limit != limit)
    known = {ends_, choose_rank(model, cuts, r, kind, limit)};
  return known.choice;
}

BlockChoice::Choice BlockChoice::choose(const CutModel& model, const Cuts& cuts,
                                        const std::vector<std::size_t>& kind,
                                        const std::vector<double>& margin, bool name_blocks) {
  Choice choice{{}, std::vector<double>(cuts.size() - 1, 0), std::vector<double>(limit_.size())};
  for (std::size_t r = 0; r < limit_.size(); ++r) {
    const RankChoice& of_rank = known_choice(model, cuts, r, kind, limit_[r] - margin[r]);
    choice.peak[r] = of_rank.peak;
    choice.fits = choice.fits && of_rank.fits;
    if (name_blocks)
      choice.blocks.insert(choice.blocks.end(), of_rank.blocks.begin(), of_rank.blocks.end());
    for (std::size_t at = 0; at < of_rank.again.size(); ++at)
      choice.again[live_.stages(r)[at]] = of_rank.again[at];
  }
  std::ranges::sort(choice.blocks);
  return choice;
}

BlockChoice::Choice BlockChoice::choose(const CutModel& model, const Cuts& cuts,
                                        const std::vector<std::size_t>& kind,
                                        const std::vector<double>& margin) {
  return choose(model, cuts, kind, margin, true);
}

BlockChoice::Choice BlockChoice::weigh(const CutModel& model, const Cuts& cuts,
                                       const std::vector<std::size_t>& kind,
                                       const std::vector<double>& margin) {
  return choose(model, cuts, kind, margin, false);
}

BlockChoice::Choice BlockChoice::of(const CutModel& model, const Cuts& cuts,
                                    const std::vector<std::size_t>& kind,
                                    std::vector<LayerRange> blocks) const {
  Choice choice{{}, std::vector<double>(cuts.size() - 1, 0), std::vector<double>(limit_.size())};
  for (std::size_t r = 0; r < limit_.size(); ++r) {
    Rank rank = start(model, cuts, r);
    for (const Piece& piece : pieces(blocks, cuts, r, kind, 1)) {
      rank.freed[piece.at] += piece.freed;
      rank.restored[piece.at] = std::max(rank.restored[piece.at], piece.restored);
      choice.again[live_.stages(r)[piece.at]] += piece.time;
    }
    choice.peak[r] = held(rank, r, fullest(rank, r));
    choice.fits = choice.fits && choice.peak[r] <= limit_[r];
  }
  choice.blocks = std::move(blocks);
  return choice;
}

}  // namespace pfeife
