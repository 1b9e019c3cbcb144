// `plan` of an experiment: what is searched, or given.
#include <algorithm>
#include <set>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/experiment/allocator_conf.h"
#include "planner/io/experiment/experiment_case.h"
#include "planner/ir/request/framework.h"

namespace pfeife {
namespace {

using Wishes = PlanSettings;

/// "pfeife" = none.
Words<std::string> framework_names() {
  Words<std::string> words{{"pfeife", ""}};
  for (const Framework& known : frameworks()) words.push_back({known.name, known.name});
  return words;
}

/// Names of schedule families, each once.
Kind<std::vector<std::string>> family_names(std::vector<std::string> families) {
  families.insert(families.end(), {"all", "certified"});
  Kind<std::vector<std::string>> kind = list_of(word(words_of(families)));
  kind.read = [read = kind.read](const YamlNode& node) {
    const std::vector<std::string> names = read(node);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
          names.begin() + static_cast<std::ptrdiff_t>(i))
        node.items()[i].fail("\"" + names[i] + "\" is here twice");
    return names;
  };
  kind.value = [](const std::vector<std::string>& names) {
    return list_value(names, [](const std::string& name) { return yaml_scalar(name); });
  };
  kind.values = "`all`, `certified`, or a list of names";
  return kind;
}

Kind<std::vector<std::size_t>> numbers_once() {
  Kind<std::vector<std::size_t>> kind = list_of(whole<std::size_t>(1, 1000));
  kind.read = [read = kind.read](const YamlNode& node) {
    const std::vector<std::size_t> numbers = read(node);
    const std::set<std::size_t> once(numbers.begin(), numbers.end());
    return std::vector<std::size_t>(once.begin(), once.end());
  };
  kind.values = "a list of 1 to 1000";
  return kind;
}

Kind<std::size_t> effort() {
  return {"`default`, or 1 or more",
          [](const YamlNode& node) {
            const bool is_default = node.is_scalar() && node.as_string() == "default";
            return is_default ? 0 : node.as_count(1);
          },
          [](std::size_t effort) {
            return yaml_scalar(effort == 0 ? "default" : std::to_string(effort));
          },
          false,
          {},
          either_schema({words_schema({"default"}), range_schema(true, 1, kMostSchema)})};
}

/// The name of a linear order, one of those that the planner has.
Kind<std::string> order_name(const ListContext& context) {
  std::vector<std::string> names{"search"};
  if (context.rules)
    names.insert(names.end(), context.rules->orders.begin(), context.rules->orders.end());
  Kind<std::string> kind = word(words_of(names));
  kind.value = [](const std::string& name) { return yaml_scalar(name); };
  kind.values = "`captured`, `depth_first`, `least_live`, `search`";
  return kind;
}

void read_rank_devices(const YamlNode& node, Wishes& plan) {
  if (node.is_scalar() && node.as_string() == "search") {
    plan.search_devices = true;
    return;
  }
  if (!node.is_sequence()) node.fail("expected the device of each rank, such as [0, 1], or search");
  plan.devices = device_list(node);
}

YamlValue rank_devices_value(const Wishes& plan) {
  if (plan.search_devices) return yaml_scalar("search");
  if (plan.devices.empty()) return {};
  return list_value(plan.devices, [](DeviceId device) { return yaml_scalar(to_string(device)); });
}

/// A file in place of what the search would find.
Field<Wishes> given_file(const std::string& key, std::optional<std::filesystem::path> Wishes::*file,
                         const ListContext& context, std::string about) {
  return {
      key,
      "a file",
      std::move(about),
      [key, file, &context](const YamlNode& node, Wishes& plan) {
        plan.*file = input_file(node, *context.folder, "plan." + key, *context.config);
      },
      [file](const Wishes& plan) { return plan.*file ? path_value(*(plan.*file)) : YamlValue{}; },
      false,
      {},
      false,
      false,
      false,
      false,
      {},
      kTextSchema};
}

/// The keys that go together: those of a given plan, or of a given schedule; none = all.
std::vector<std::string> keys_beside(bool file, bool schedule) {
  if (file) return {"file", "reserve", "allocator", "memory_margin"};
  if (schedule) return {"schedule", "cuts", "reserve", "allocator", "memory_margin", "devices"};
  return {};
}

}  // namespace

std::vector<std::int32_t> cut_list(const YamlNode& node) {
  std::vector<std::int32_t> cuts;
  for (const YamlNode& item : node.items()) {
    cuts.push_back(static_cast<std::int32_t>(item.as_int(0, 1'000'000)));
    if (cuts.size() > 1 && cuts[cuts.size() - 2] >= cuts.back())
      item.fail("cuts must increase from left to right");
  }
  return cuts;
}

FieldList<Wishes> plan_fields(const ListContext& context) {
  auto cuts_at = field("cuts_at", &Wishes::cuts_at,
                       word<Wishes::CutsAt>({{"auto", Wishes::CutsAt::Auto},
                                             {"layers", Wishes::CutsAt::Layers},
                                             {"blocks", Wishes::CutsAt::Blocks}}),
                       "where cuts of an archive may lie. Between two [blocks](recomputation.md) "
                       "one value passes (no residual), and a submodule that is called once ends "
                       "or begins: what other frameworks can run. `auto`: there, if that costs "
                       "less than 1 % of the step (in an order that is captured and not given, "
                       "without a profile)");
  cuts_at.value = [value = cuts_at.value](const Wishes& plan) {
    return plan.framework.empty() ? value(plan) : YamlValue{};  // `for` says it
  };
  return {
      field("families", &Wishes::families,
            family_names(context.rules ? context.rules->families : std::vector<std::string>{}),
            "schedules among which the plan is chosen, by their [names]"
            "(../../planner/schedules/README.md). `all` lacks `combined_1f1b`, and `v_half`, "
            "`v_min`, with whose orders `zbv_greedy` begins where memory is short. `certified`: "
            "round-robin "
            "placement and an order "
            "that does not depend on costs, for the tight bounds. A named family that cannot do a "
            "case is an error with the nearest N that it can")
          .always(),
      field("stages_per_rank", &Wishes::stages_per_rank, numbers_once(),
            "V, numbers of stages a rank to try")
          .always(),
      field("head", &Wishes::head,
            word<Wishes::Head>({{"last", Wishes::Head::Last},
                                {"shared", Wishes::Head::Shared},
                                {"auto", Wishes::Head::Auto}}),
            "where the output layer of a mesh runs: on the last rank, on [all ranks](head.md), "
            "or where the step is shorter"),
      field(
          "slices", &Wishes::slices, numbers_once(),
          "S, numbers of [slices](slices.md) to try of each microbatch's sequence, by the families "
          "`seq1f1b`, `terapipe` and `slimpipe`, and beside whole ones by `zb_greedy` and "
          "`zbv_greedy`")
          .by_default("none"),
      field("slice_lengths", &Wishes::slice_lengths,
            word<SliceLengths>(
                {{"equal_time", SliceLengths::EqualTime}, {"equal_length", SliceLengths::Equal}}),
            "where a sequence is cut: attention makes later ones of equally long slices slower"),
      field("search", &Wishes::reference, word<bool>({{"planner", false}, {"reference", true}}),
            "`reference`: the algorithm of Pfeife (ICML 2025) with its schedules (`looped`), cuts, "
            "stopping rules and memory formula (85 % of a device), for comparisons. No bound")
          .always(),
      field("iterations", &Wishes::iterations, effort(), "effort of the search").always(),
      cuts_field<Wishes>(
          {{"search", Wishes::Cuts::Search}, {"each_layer", Wishes::Cuts::EachLayer}},
          "`each_layer`: a stage ends after every layer after which the model may be "
          "cut. Each cut of a list is the number of the layer that it lies after; the "
          "bound is then of these cuts")
          .always(),
      field("recompute", &Wishes::recompute,
            word(words_of<Recompute>({Recompute::None, Recompute::IfNeeded, Recompute::Full,
                                      Recompute::Choose, Recompute::Blocks, Recompute::Attention})),
            "which stages keep only their inputs and compute their forward again in backward: "
            "[recomputation](recomputation.md)")
          .always(),
      field("recompute_except_last", &Wishes::recompute_except_last, flag(),
            "`true`: of what is recomputed, [not the last microbatch]"
            "(recomputation.md#all-but-the-last-microbatch)"),
      field("offload", &Wishes::offload, word<bool>({{"none", false}, {"auto", true}}),
            "`auto`: stages may [send what they save to the host](offload.md) between forward and "
            "backward, chosen together with recomputation where memory is short"),
      field("receives", &Wishes::receives,
            word<Receives>({{"if_needed", Receives::AtNeed}, {"as_ready", Receives::AsReady}}),
            "`if_needed`: a plan that does not fit otherwise takes each message right before it is "
            "read, as far as its rows can then not hang"),
      field("order", &Wishes::order, order_name(context),
            "the linear order of an archive's operators, which is what is cut. `depth_first`: what "
            "only a later result needs waits; `least_live`: always what leaves the fewest bytes "
            "alive; `search`: the best of them [is found](open_choices.md)"),
      field("microbatch_order", &Wishes::search_microbatch_order,
            word<bool>({{"fixed", false}, {"search", true}}),
            "`search`: finds in which order microbatches that [differ](microbatches.md) run"),
      field("for", &Wishes::framework, word(framework_names()),
            "only what this [framework](frameworks.md) runs: its cuts, schedules and "
            "recomputation"),
      cuts_at,
      field("reserve", &Wishes::reserve, memory(),
            "memory of each device that the model may not use")
          .by_default("the device kind's"),
      field(
          "as_fast", &Wishes::as_fast, real(0, 1),
          "plans that take at most this share longer than the fastest count as fast; of these the "
          "one is taken whose fullest device has the most room. 0: the fastest, whatever it "
          "needs"),
      field("max_bubble", &Wishes::max_bubble, real(0, 1),
            "largest share of devices x step without compute that the plan may have. `--verbose` "
            "says what it costs")
          .by_default("any"),
      field<Wishes>("allocator", &Wishes::allocator, allocator_kind(),
                    "settings of PyTorch's allocator, as PYTORCH_ALLOC_CONF has them: what it "
                    "[reserves](#reserved-memory) must fit. `none`: what is "
                    "allocated"),
      field("memory_margin", &Wishes::memory_margin, real(0, 0.9),
            "share of a device's memory, less the reserve, that stays free")
          .by_default("`0.02`; with `allocator: none`, `0`"),
      Field<Wishes>{"devices", "a list, or `search`",
                    "the device of each rank. `search`: which of the first D runs which rank [is "
                    "found](open_choices.md)",
                    read_rank_devices, rank_devices_value, true}
          .by_default("rank r on device r")
          .with_schema(either_schema({words_schema({"search"}), list_schema(kAnySchema)})),
      field("placement", &Wishes::search_placement,
            word<bool>({{"by_family", false}, {"search", true}}),
            "which rank has which stage: round robin or a V, or [any](open_choices.md), with more "
            "stages on some ranks, in orders of `zb_greedy`. No bound covers such a plan"),
      given_file("file", &Wishes::file, context,
                 "instead of all these: a `plan.yaml` with its `schedule.csv` beside it, or their "
                 "folder. It says "
                 "devices and microbatches, and precision, optimizer, clipping and microbatch size "
                 "where `training` does not")
          .by_default("none"),
      given_file("schedule", &Wishes::schedule, context,
                 "instead: a schedule as CSV, with transfers or without; needs `cuts`. It says "
                 "devices and microbatches")
          .by_default("none")};
}

void read_plan_settings(const YamlNode& node, const FieldList<PlanSettings>& fields,
                        PlanSettings& plan) {
  if (node.is_map()) node.refuse_old("loops", "stages_per_rank");
  const bool file = node.is_map() && node.find("file");
  const bool schedule = node.is_map() && node.find("schedule");
  const std::vector<std::string> keys = keys_beside(file, schedule);
  node.check_keys(keys.empty() ? fields.keys() : keys);
  fields.read_known(node, plan);
  if (schedule && !file) node.at("cuts");
  const Framework* const made_for = framework(plan.framework);
  if (made_for == nullptr) return;
  if (!node.find("recompute")) plan.recompute = Recompute::None;
  if (!node.find("families") && !made_for->families.empty()) plan.families = made_for->families;
  if (!node.find("cuts_at")) plan.cuts_at = Wishes::CutsAt::Blocks;
}

YamlValue plan_value(const FieldList<PlanSettings>& fields, const PlanSettings& plan) {
  std::vector<std::string> keys = keys_beside(plan.file.has_value(), plan.schedule.has_value());
  if (keys.empty() && plan.reference)
    keys = {"stages_per_rank", "search", "reserve", "allocator", "memory_margin", "devices"};
  return (keys.empty() ? fields : fields.only(keys)).value(plan);
}

}  // namespace pfeife
