#include <algorithm>
#include <charconv>
#include <sstream>

#include "planner/io/plan/plan_file.h"

namespace pfeife {
namespace {

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
  spec.loop_batch = {}, spec.prefetch = {}, spec.slices = 1, spec.slice_lengths = {};
  spec.rank_of_stage = {};
  for (std::size_t p = 2; p < parts.size(); ++p) {
    const std::string& knob = parts[p];
    const std::size_t is = knob.find('=') + 1;
    if (knob.starts_with("loop_batch=")) {
      spec.loop_batch = count(std::string_view(knob).substr(is));
      continue;
    }
    if (knob.starts_with("slices=")) {
      constexpr std::string_view kEqualTime = " of equal time";
      std::string_view number = std::string_view(knob).substr(is);
      if (number.ends_with(kEqualTime)) {
        number.remove_suffix(kEqualTime.size());
        spec.slice_lengths = SliceLengths::EqualTime;
      }
      spec.slices = count(number);
      continue;
    }
    std::istringstream values(knob.starts_with("prefetch=") ? knob.substr(is) : "-");
    for (std::string value; std::getline(values, value, ',');)
      spec.prefetch.push_back(count(value));
  }
  return spec;
}

}  // namespace

Kind<Bound> bound_map(const ScheduleSpec& spec) {
  const Kind<ScheduleSpec> schedule{
      "", [spec](const YamlNode& node) { return read_spec_text(node, spec); },
      [](const ScheduleSpec& of) { return yaml_string(spec_text(of)); }};
  return map_of<Bound>(
      {field("time", &Bound::time, duration(), "").always().needed(),
       field("cuts", &Bound::given_cuts, word<bool>({{"all", false}, {"given", true}}), "")
           .always()
           .needed(),
       field("least_share", &Bound::least_share, real(0, 1), ""),
       field("linked", &Bound::linked, flag(), ""),
       field("recompute", &Bound::recompute,
             word(words_of<Recompute>(
                 {Recompute::None, Recompute::Full, Recompute::Choose, Recompute::Blocks})),
             "")
           .always()
           .needed(),
       field("schedules", &Bound::schedules, list_of(schedule), "").always().needed(),
       field("memory_limit", &Bound::memory_limit, list_of(memory()), "").always().needed(),
       field("uncertified", &Bound::uncertified, free_text(), "")});
}

}  // namespace pfeife
