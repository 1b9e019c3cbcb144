#include "planner/cost/blocks.h"

#include <algorithm>
#include <cctype>
#include <functional>

namespace pfeife {
namespace {

bool is_number(const std::string& word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); });
}
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

}  // namespace

bool in_numbered_module(const Layer& layer) { return !up_to(layer.module_path, is_number).empty(); }

std::vector<LayerRange> model_blocks(const Layers& layers) {
  std::vector<std::string> block;  // [layer]
  for (const Layer& layer : layers.layers) block.push_back(up_to(layer.module_path, is_number));
  const bool numbered = std::ranges::any_of(block, [](const auto& path) { return !path.empty(); });
  const std::vector<std::size_t> values = passing(layers);
  std::vector<LayerRange> found;
  LayerId first{0};
  for (LayerId l{0}; l.index() < layers.size(); ++l.value) {
    const std::size_t at = l.index();
    const bool last = at + 1 == layers.size();
    const bool border = last || (layers.layers[at].no_cut_after.empty() &&
                                 (numbered ? block[at] != block[at + 1] : values[at] == 1));
    if (!border) continue;
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
