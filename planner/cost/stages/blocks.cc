#include "planner/cost/stages/blocks.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <tuple>

#include "planner/cost/layers/repetition.h"
#include "planner/ir/model/numbered_module.h"

namespace pfeife {
namespace {

bool is_attention(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word.find("attn") != std::string::npos || word.find("attention") != std::string::npos;
}

/// `path` up to the first of its words that is `wanted`; "" if none is.
std::string up_to(const std::string& path, const std::function<bool(const std::string&)>& wanted) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (wanted(path.substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return "";
}

/// [layer] values that pass on behind it.
std::vector<std::size_t> passing(const Layers& layers) {
  std::vector<std::size_t> count(layers.size(), 0);
  for (const LayerValue& value : layers.values)
    for (LayerId l = value.producer; l < value.consumers.back(); ++l.value) ++count[l.index()];
  return count;
}

/// [layer] the same number for layers that do the same: by name without digits, and all bytes.
std::vector<std::size_t> kinds(const Layers& layers) {
  std::vector<std::vector<Bytes>> kept(layers.size());
  for (const LayerStorage& storage : layers.storages)
    for (const LayerId l : storage.savers) kept[l.index()].push_back(storage.bytes);
  using Look = std::tuple<std::string, Bytes, Bytes, Bytes, Bytes, Bytes, std::vector<Bytes>>;
  std::map<Look, std::size_t> seen;
  std::vector<std::size_t> kind;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers.layers[l];
    std::string name = layer.name;
    std::erase_if(name, [](unsigned char c) { return std::isdigit(c); });
    std::ranges::sort(kept[l]);
    const Look look{name,
                    layer.saved,
                    layer.weight_saved,
                    layer.temporary.forward,
                    layer.temporary.input,
                    layer.temporary.weight,
                    kept[l]};
    kind.push_back(seen.try_emplace(look, seen.size()).first->second);
  }
  return kind;
}

/// Where pieces of layers that are repeated begin and end, counted from the place where the fewest
/// values pass. Nothing if less than half of the layers are repetitions of a piece of several.
void add_repeated(const Layers& layers, const std::vector<std::size_t>& values,
                  std::vector<bool>& border) {
  const std::vector<std::size_t> kind = kinds(layers);
  const auto run = longest_repetition(kind);
  if (!run || run->period == 1 || 2 * run->period * run->times < layers.size()) return;
  const auto passing_behind = [&](std::size_t piece) { return values[piece + run->period - 1]; };
  std::size_t first = run->first;
  for (std::size_t l = first + 1; l < run->first + run->period; ++l)
    if (passing_behind(l) < passing_behind(first)) first = l;
  if (first > 0) border[first - 1] = true;
  std::size_t end = run->first + run->period * run->times;
  while (end < kind.size() && kind[end] == kind[end - run->period]) ++end;
  for (std::size_t piece = first; piece + run->period <= end; piece += run->period) {
    for (std::size_t l = piece; l + 1 < piece + run->period; ++l) border[l] = false;
    border[piece + run->period - 1] = true;
  }
}

}  // namespace

bool in_numbered_module(const Layer& layer) { return !numbered_module(layer.module_path).empty(); }

std::vector<LayerRange> model_blocks(const Layers& layers) {
  std::vector<std::string> block;  // [layer]
  for (const Layer& layer : layers.layers) block.push_back(numbered_module(layer.module_path));
  const bool numbered = std::ranges::any_of(block, [](const auto& path) { return !path.empty(); });
  const std::vector<std::size_t> values = passing(layers);
  std::vector<bool> border(layers.size());  // [layer] behind it
  for (std::size_t l = 0; l + 1 < layers.size(); ++l)
    border[l] = numbered ? block[l] != block[l + 1] : values[l] == 1;
  if (!numbered) add_repeated(layers, values, border);
  std::vector<LayerRange> found;
  LayerId first{0};
  for (LayerId l{0}; l.index() < layers.size(); ++l.value) {
    const bool last = l.index() + 1 == layers.size();
    if (!last && (!border[l.index()] || !layers.layers[l.index()].no_cut_after.empty())) continue;
    found.push_back({first, l});
    first = LayerId{l.value + 1};
  }
  return found;
}

std::vector<LayerRange> attention_blocks(const Layers& layers) {
  std::vector<LayerRange> found;
  const auto legal = [&](std::size_t l) { return layers.layers[l].no_cut_after.empty(); };
  const auto module = [&](std::size_t l) {
    return up_to(layers.layers[l].module_path, is_attention);
  };
  for (std::size_t first = 0, end; first < layers.size(); first = end) {
    const std::string path = module(first);
    end = first + 1;
    if (path.empty()) continue;
    while (end < layers.size() && module(end) == path) ++end;
    if ((first == 0 || legal(first - 1)) && (end == layers.size() || legal(end - 1)))
      found.push_back({LayerId{first}, LayerId{end - 1}});
  }
  return found;
}

std::vector<LayerRange> cut_blocks(const std::vector<LayerRange>& blocks,
                                   const Partition& partition) {
  std::vector<LayerRange> found;
  auto cut = partition.cuts.begin();
  for (LayerRange block : blocks) {
    while (cut != partition.cuts.end() && *cut < block.first.value) ++cut;
    for (; cut != partition.cuts.end() && *cut < block.last.value; ++cut) {
      found.push_back({block.first, LayerId{*cut}});
      block.first = LayerId{*cut + 1};
    }
    found.push_back(block);
  }
  return found;
}

}  // namespace pfeife
