#include "planner/io/plan/plan_bound.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace pfeife {
namespace {

const std::vector<std::pair<std::string, Recompute>> kRecompute{{"none", Recompute::None},
                                                                {"full", Recompute::Full},
                                                                {"choose", Recompute::Choose},
                                                                {"blocks", Recompute::Blocks}};

template <class T, class Make>
YamlValue list(const std::vector<T>& values, const Make& make) {
  std::vector<YamlValue> items;
  for (const T& value : values) items.push_back(make(value));
  return yaml_sequence(std::move(items));
}

/// "looped, V=3, loop_batch=8, prefetch=1,2"
std::string spec_text(const ScheduleSpec& spec) {
  const std::string chosen = knobs(spec);
  return stream_all(spec.family, ", V=", spec.stages_per_rank, chosen.empty() ? "" : ", ", chosen);
}

/// What stands between commas that a blank follows.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(", ", begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// What spec_text() has written, of as many ranks and microbatches as `spec` has.
ScheduleSpec read_spec_text(const YamlNode& node, ScheduleSpec spec) {
  const std::vector<std::string> parts = parts_of(node.as_string());
  const auto count = [&](std::string_view text) {
    std::size_t value = 0;
    const auto end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, value);
        error != std::errc{} || at != end)
      node.fail("expected a schedule such as \"looped, V=3, loop_batch=8, prefetch=1,2\"");
    return value;
  };
  if (parts.size() < 2 || !parts[1].starts_with("V=")) count("");
  spec.family = parts[0];
  spec.stages_per_rank = count(std::string_view(parts[1]).substr(2));
  spec.loop_batch = {}, spec.prefetch = {};
  for (std::size_t p = 2; p < parts.size(); ++p) {
    const std::string& knob = parts[p];
    const std::size_t is = knob.find('=') + 1;
    if (knob.starts_with("loop_batch=")) {
      spec.loop_batch = count(std::string_view(knob).substr(is));
      continue;
    }
    std::istringstream values(knob.starts_with("prefetch=") ? knob.substr(is) : "-");
    for (std::string value; std::getline(values, value, ',');)
      spec.prefetch.push_back(count(value));
  }
  return spec;
}

}  // namespace

YamlValue bound_value(const Bound& bound) {
  const auto spec = [](const ScheduleSpec& one) { return yaml_string(spec_text(one)); };
  const auto amount = [](Bytes limit) { return yaml_amount(limit); };
  std::vector<YamlEntry> entries{{"time", yaml_amount(bound.time), {}},
                                 {"cuts", yaml_scalar(bound.given_cuts ? "given" : "all"), {}}};
  if (bound.least_share > 0) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), bound.least_share).ptr;
    entries.push_back({"least_share", yaml_scalar(std::string(digits.data(), end)), {}});
  }
  if (bound.linked) entries.push_back({"linked", yaml_scalar("true"), {}});
  for (const auto& [name, value] : kRecompute)
    if (value == bound.recompute) entries.push_back({"recompute", yaml_scalar(name), {}});
  entries.push_back({"schedules", list(bound.schedules, spec), {}});
  entries.push_back({"memory_limit", list(bound.memory_limit, amount), {}});
  if (!bound.uncertified.empty())
    entries.push_back({"uncertified", yaml_string(bound.uncertified), {}});
  return yaml_map(std::move(entries));
}

Bound read_bound(const YamlNode& node, const ScheduleSpec& spec) {
  node.check_keys({"time", "cuts", "least_share", "linked", "recompute", "schedules",
                   "memory_limit", "uncertified"});
  Bound bound{.time = node.at("time").as_duration()};
  bound.given_cuts = node.at("cuts").as_one_of<bool>({{"all", false}, {"given", true}});
  if (const auto share = node.find("least_share")) bound.least_share = share->as_double(0, 1);
  if (const auto linked = node.find("linked")) bound.linked = linked->as_bool();
  bound.recompute = node.at("recompute").as_one_of<Recompute>(kRecompute);
  for (const YamlNode& item : node.at("schedules").items())
    bound.schedules.push_back(read_spec_text(item, spec));
  for (const YamlNode& item : node.at("memory_limit").items())
    bound.memory_limit.push_back(item.as_bytes());
  if (const auto uncertified = node.find("uncertified"))
    bound.uncertified = uncertified->as_string();
  return bound;
}

}  // namespace pfeife
