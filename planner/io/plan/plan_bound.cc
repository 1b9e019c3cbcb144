#include "planner/io/plan/plan_bound.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace pfeife {
namespace {

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
  std::vector<YamlEntry> entries{{"time", yaml_amount(bound.time), {}},
                                 {"covers", yaml_string(bound.covers), {}}};
  if (!bound.uncertified.empty())
    entries.push_back({"uncertified", yaml_string(bound.uncertified), {}});
  if (!bound.schedules.empty()) {
    const auto text = [](const ScheduleSpec& spec) { return yaml_string(spec_text(spec)); };
    entries.push_back({"schedules", list(bound.schedules, text), {}});
    const auto amount = [](Bytes limit) { return yaml_amount(limit); };
    entries.push_back({"memory_limit", list(bound.memory_limit, amount), {}});
  }
  return yaml_map(std::move(entries));
}

Bound read_bound(const YamlNode& node, const ScheduleSpec& spec) {
  // "problems": plans of earlier programs, which had certificates of several problems.
  node.check_keys({"time", "covers", "uncertified", "problems", "schedules", "memory_limit"});
  Bound bound{node.at("time").as_duration(), node.at("covers").as_string()};
  if (const auto uncertified = node.find("uncertified"))
    bound.uncertified = uncertified->as_string();
  if (const auto schedules = node.find("schedules")) {
    for (const YamlNode& item : schedules->items())
      bound.schedules.push_back(read_spec_text(item, spec));
    for (const YamlNode& item : node.at("memory_limit").items())
      bound.memory_limit.push_back(item.as_bytes());
  }
  return bound;
}

}  // namespace pfeife
