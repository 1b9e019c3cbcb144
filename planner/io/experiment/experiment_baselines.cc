// `baselines` of an experiment: what the plan is compared with.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/ir/result/case_files.h"

namespace pfeife {
namespace {

using Cuts = BaselineSettings::Cuts;

/// A name that can be a folder's.
std::string read_name(const YamlNode& node) {
  const std::string name = node.as_string();
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.';
  };
  if (name.empty() || name.size() > 40 || name.front() == '.' ||
      !std::ranges::all_of(name, plain) || name == "planned")
    node.fail("\"" + name +
              "\" names a folder: use up to 40 letters, digits, and \"_-+.\", none of the last at "
              "the start, and not \"planned\"");
  if (std::ranges::find(kCaseFiles, name) != kCaseFiles.end()) {
    std::string names;
    for (const std::string_view file : kCaseFiles)
      names += (names.empty() ? "" : ", ") + std::string(file);
    node.fail(
        "\"" + name +
        "\" names a folder, beside which the case has files of its own: use another name, none "
        "of " +
        names);
  }
  return name;
}

void read_cuts(const YamlNode& node, BaselineSettings& baseline) {
  if (node.is_sequence()) {
    baseline.cuts = Cuts::Given;
    baseline.given_cuts = cut_list(node);
    return;
  }
  std::vector<std::pair<std::string, Cuts>> words;
  for (const Cuts one :
       {Cuts::EqualTime, Cuts::EqualParameters, Cuts::EqualLayers, Cuts::Search, Cuts::Reference})
    words.emplace_back(to_string(one), one);
  baseline.cuts = node.as_one_of<Cuts>(words);
}

BaselineSettings read_baseline(const YamlNode& node,
                               const std::vector<std::pair<std::string, std::string>>& families) {
  node.check_keys({"family", "name", "cuts", "cuts_at", "recompute", "recompute_except_last",
                   "stages_per_rank", "loop_batch", "prefetch"});
  BaselineSettings baseline{node.at("family").as_one_of<std::string>(families)};
  if (const auto name = node.find("name")) baseline.called = read_name(*name);
  if (const auto cuts = node.find("cuts")) read_cuts(*cuts, baseline);
  if (const auto at = node.find("cuts_at"))
    baseline.at_blocks = at->as_one_of<bool>({{"layers", false}, {"blocks", true}});
  if (const auto recompute = node.find("recompute"))
    baseline.recompute = recompute_setting(*recompute, false);
  if (const auto except = node.find("recompute_except_last"))
    baseline.recompute_except_last = except->as_bool();
  if (const auto stages = node.find("stages_per_rank"))
    baseline.stages_per_rank = stages->as_count(1, 1000);
  if (const auto batch = node.find("loop_batch")) baseline.loop_batch = batch->as_count(1);
  if (const auto prefetch = node.find("prefetch"))
    for (const YamlNode& item : prefetch->items_or_self())
      baseline.prefetch.push_back(static_cast<std::size_t>(item.as_int(0, 1'000'000)));
  return baseline;
}

}  // namespace

std::vector<BaselineSettings> baseline_settings(const YamlNode& node,
                                                const std::vector<std::string>& families) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& family : families) words.emplace_back(family, family);
  std::vector<BaselineSettings> baselines;
  for (const YamlNode& item : node.items_or_self())
    baselines.push_back(item.is_map() && !node.is_map()
                            ? read_baseline(item, words)
                            : BaselineSettings{item.as_one_of<std::string>(words)});
  return baselines;
}

std::string baseline_text(const BaselineSettings& baseline) {
  if (baseline == BaselineSettings{baseline.family}) return baseline.family;
  const auto list = [](const auto& numbers) {
    std::string text;
    for (const auto number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
    return "[" + text + "]";
  };
  std::string text = "{family: " + baseline.family;
  if (!baseline.called.empty()) text += ", name: \"" + baseline.called + "\"";
  if (baseline.cuts == Cuts::Given)
    text += ", cuts: " + list(baseline.given_cuts);
  else if (baseline.cuts != Cuts::EqualTime)
    text += ", cuts: " + to_string(baseline.cuts);
  if (baseline.at_blocks) text += ", cuts_at: blocks";
  if (baseline.recompute != Recompute::None)
    text += ", recompute: " + to_string(baseline.recompute);
  if (baseline.recompute_except_last) text += ", recompute_except_last: true";
  if (baseline.stages_per_rank)
    text += ", stages_per_rank: " + std::to_string(*baseline.stages_per_rank);
  if (baseline.loop_batch) text += ", loop_batch: " + std::to_string(*baseline.loop_batch);
  if (!baseline.prefetch.empty()) text += ", prefetch: " + list(baseline.prefetch);
  return text + "}";
}

}  // namespace pfeife
