// `baselines` of an experiment: what the plan is compared with.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/ir/result/case_files.h"
#include "planner/ir/result/result_engine.h"

namespace pfeife {
namespace {

using Baseline = BaselineSettings;

/// A name that can be a folder's.
std::string read_name(const YamlNode& node) {
  const std::string name = node.as_string();
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.';
  };
  if (name.empty() || name.size() > 40 || name.front() == '.' ||
      !std::ranges::all_of(name, plain) || name == "planned" || name == kLessMemory)
    node.fail("\"" + name +
              "\" names a folder: use up to 40 letters, digits, and \"_-+.\", none of the last at "
              "the start, and neither \"planned\" nor \"less_memory\"");
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

}  // namespace

FieldList<BaselineSettings> baseline_fields(const std::vector<std::string>& families) {
  using Cuts = Baseline::Cuts;
  Kind<std::string> family = word(words_of(families));
  family.value = [](const std::string& name) { return yaml_scalar(name); };
  return {
      field("family", &Baseline::family, family,
            "a [schedule family](../../planner/schedules/README.md)")
          .always()
          .needed()
          .with_values("a name"),
      field("name", &Baseline::called, Kind<std::string>{"a word", read_name, free_text().value},
            "what table and folder call it: up to 40 letters, digits and `_-+.`; not `planned` "
            "or `less_memory`, nor as a file of the case's folder (`case.json`, `plans.svg`, ...)")
          .by_default("family, cuts and recomputation: `1f1b_equal_layers_blocks`"),
      cuts_field<Baseline>(words_of<Cuts>({Cuts::EqualTime, Cuts::EqualParameters,
                                           Cuts::EqualLayers, Cuts::Search, Cuts::Reference}),
                           "where the model is [cut](#cuts)"),
      field("cuts_at", &Baseline::at_blocks, cuts_at_words(),
            "`blocks`: cuts lie between [blocks](recomputation.md) only"),
      field("recompute", &Baseline::recompute,
            word(words_of<Recompute>({Recompute::None, Recompute::Full, Recompute::Choose,
                                      Recompute::Blocks, Recompute::Attention})),
            "as `plan.recompute`, on the same cuts"),
      field("recompute_except_last", &Baseline::recompute_except_last, flag(),
            "as `plan.recompute_except_last`"),
      field("stages_per_rank", &Baseline::stages_per_rank, whole<std::size_t>(1, 1000),
            "of the schedule, where its family has them")
          .by_default("as few as the family takes"),
      field("loop_batch", &Baseline::loop_batch, whole<std::size_t>(1, 1'000'000'000),
            "of the schedule, where its family has it")
          .by_default("the family's"),
      field("prefetch", &Baseline::prefetch, list_of(whole<std::size_t>(0, 1'000'000)),
            "of the schedule, where its family has it: one number, or one a rank")
          .by_default("none")};
}

std::vector<BaselineSettings> baseline_settings(const YamlNode& node,
                                                const FieldList<BaselineSettings>& fields) {
  std::vector<BaselineSettings> baselines;
  for (const YamlNode& item : node.items_or_self()) {
    BaselineSettings& baseline = baselines.emplace_back();
    if (item.is_map() && !node.is_map())
      fields.read(item, baseline);
    else
      fields.find("family")->read(item, baseline);
  }
  return baselines;
}

YamlValue baseline_value(const BaselineSettings& baseline) {
  if (baseline == BaselineSettings{baseline.family}) return yaml_scalar(baseline.family);
  static const FieldList<Baseline> fields = baseline_fields({});
  return fields.value(baseline);
}

}  // namespace pfeife
