#include "planner/schedule_tool/argument_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "planner/ir/basics/error.h"

namespace pfeife::tool {

std::string ms_text(double ms) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6f", ms);
  std::string result = text.data();
  result.erase(result.find_last_not_of('0') + 1);
  if (result.ends_with('.')) result.pop_back();
  return result;
}

std::string percent_text(double fraction) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * fraction);
  return text.data();
}

std::size_t whole_number(const std::string& text, const std::string& option) {
  const auto fail = [&](const char* why) {
    throw ConfigError({}, option + ": '" + text.substr(0, 40) + "' " + why);
  };
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    fail("is not a whole number");
  if (text.size() > 1 && text[0] == '0') fail("has a zero too many in front");
  if (text.size() > 9) fail("is above 999999999");
  return std::stoul(text);
}

std::vector<std::size_t> whole_numbers(const std::string& text, const std::string& option) {
  std::vector<std::size_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    numbers.push_back(whole_number(text.substr(begin, end - begin), option));
    begin = end + 1;
  }
  return numbers;
}

Queues read_queues(const std::string& name) {
  for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})
    if (to_string(queues) == name) return queues;
  throw ConfigError({}, "--queues: unknown value '" + name + "'; use none, edge, pair or rank");
}

StageGraph::Edge read_skip(const std::string& text) {
  const std::size_t arrow = text.find('>');
  if (arrow == std::string::npos)
    throw ConfigError({}, "--skip: '" + text + "': FROM>TO is expected, as in 0>3");
  const StageGraph::Edge skip{StageId{whole_number(text.substr(0, arrow), "--skip")},
                              StageId{whole_number(text.substr(arrow + 1), "--skip")}};
  if (skip.from >= skip.to)
    throw ConfigError({}, "--skip: '" + text + "': values flow to later stages only");
  return skip;
}

std::vector<StageId> read_tied(const std::string& text) {
  std::vector<StageId> stages;
  for (const std::size_t stage : whole_numbers(text, "--tied")) stages.emplace_back(stage);
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  if (stages.size() < 2)
    throw ConfigError({}, "--tied: '" + text + "': two stages or more are expected");
  return stages;
}

}  // namespace pfeife::tool
