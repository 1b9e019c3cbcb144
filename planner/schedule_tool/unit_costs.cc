#include "planner/schedule_tool/unit_costs.h"

#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/slice_costs.h"

namespace pfeife::tool {
namespace {

const std::vector<std::string> kKeys{"f",        "i",          "w",         "b",
                                     "s",        "t",          "optimizer", "offload",
                                     "transfer", "collective", "overlap",   "linear"};

[[noreturn]] void fail(const std::string& item, const std::string& reason) {
  throw ConfigError({}, "--costs: '" + item + "': " + reason +
                            "; allowed: f, i, w, b (= i + w), s, t, optimizer, offload, transfer, "
                            "collective in ms, the factor overlap and the share linear, as in "
                            "f=1,i=1,w=1,transfer=0.05");
}

constexpr const char* kExpectedNumber = "a number from 0 to 1e9 is expected";

std::optional<double> number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  constexpr double kLargest = 1e9;
  if (text.empty() || *end != '\0' || !(value >= 0) || value > kLargest) return std::nullopt;
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.emplace_back();
  return parts;
}

void set(UnitCosts& costs, const std::string& item) {
  const std::size_t equals = item.find('=');
  const std::string key = item.substr(0, equals);
  if (equals == std::string::npos) fail(item, "key=value is expected");
  std::vector<double> values;
  for (const std::string& text : split(item.substr(equals + 1), ':')) {
    const std::optional<double> value = number(text);
    if (!value) fail(item, kExpectedNumber);
    values.push_back(*value);
  }
  if (key == "f") {
    costs.forward = values;
  } else if (key == "i") {
    costs.backward_input = values;
  } else if (key == "w") {
    costs.backward_weight = values;
  } else if (key == "b") {
    for (double& value : values) value /= 2;
    costs.backward_input = costs.backward_weight = values;
  } else if (key == "s") {
    costs.share = values;
  } else if (key == "t") {
    costs.rest = values;
  } else if (key == "optimizer") {
    costs.optimizer = values;
  } else if (key == "offload") {
    costs.offload = values;
  } else if (key == "transfer" || key == "collective" || key == "overlap" || key == "linear") {
    if (values.size() != 1) fail(item, "one value is expected");
    if (key == "linear" && values[0] > 1) fail(item, "a share from 0 to 1 is expected");
    (key == "transfer"     ? costs.transfer
     : key == "collective" ? costs.collective
     : key == "overlap"    ? costs.overlap
                           : costs.linear) = values[0];
  } else {
    const std::string nearest = nearest_spelling(key, kKeys);
    fail(item, "unknown key" + (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
  }
}

double at(const std::vector<double>& values, std::size_t stage, std::size_t stages) {
  if (values.size() == 1) return values[0];
  if (values.size() != stages)
    throw ConfigError({}, "--costs: a list of " + std::to_string(values.size()) + " values for " +
                              std::to_string(stages) +
                              " stages; give one value, or one for each stage");
  return values[stage];
}

}  // namespace

double parse_ms(const std::string& option, const std::string& text) {
  const std::optional<double> value = number(text);
  if (!value) throw ConfigError({}, option + ": '" + text + "': " + kExpectedNumber + ", in ms");
  return *value;
}

UnitCosts parse_costs(const std::string& text) {
  UnitCosts costs;
  std::set<std::string> known;
  for (const std::string& item : split(text, ',')) {
    const std::string key = item.substr(0, item.find('='));
    if (!known.insert(key).second) fail(item, "the key is there twice");
    set(costs, item);
  }
  if (known.contains("b") && (known.contains("i") || known.contains("w")))
    throw ConfigError({}, "--costs: b is i and w together; give b, or i and w");
  return costs;
}

StageCosts stage_costs_of(const UnitCosts& costs, std::size_t stages, std::size_t slices,
                          std::size_t head_barriers) {
  StageCosts result = uniform_costs(stages, Nanoseconds{0}, Nanoseconds{0}, Nanoseconds{0},
                                    nanoseconds_from_ms(costs.transfer));
  for (std::size_t s = 0; s < stages; ++s) {
    StageCost& stage = result.stages[s];
    stage.forward = nanoseconds_from_ms(at(costs.forward, s, stages));
    stage.backward_input = nanoseconds_from_ms(at(costs.backward_input, s, stages));
    stage.backward_weight = nanoseconds_from_ms(at(costs.backward_weight, s, stages));
    stage.optimizer = nanoseconds_from_ms(at(costs.optimizer, s, stages));
    stage.offload = stage.reload = nanoseconds_from_ms(at(costs.offload, s, stages));
    if (stage.offload > Nanoseconds{0}) stage.offloaded = stage.saved;
    if (head_barriers == 0) continue;
    stage.head_share = nanoseconds_from_ms(at(costs.share, s, stages));
    stage.head_rest = nanoseconds_from_ms(at(costs.rest, s, stages));
  }
  const Nanoseconds together = nanoseconds_from_ms(costs.collective);
  if (head_barriers > 0) result.head = SharedHead{head_barriers, together, together, together};
  result.overlap_factor = costs.overlap;
  if (slices > 1) {
    const double linear[] = {costs.linear};
    const std::vector<double> ends = slice_ends(slices, SliceLengths::Equal, costs.linear);
    result = with_slices(std::move(result), ends, linear);
  }
  return costs.mode == Mode::Forward ? without_backward(std::move(result)) : result;
}

}  // namespace pfeife::tool
