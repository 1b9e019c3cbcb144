#include <optional>
#include <span>
#include <vector>

#include "planner/io/files/quantity.h"
#include "planner/io/files/yaml.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostSteps = 64;

/// One step of a path: a key, or an index.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
  bool quoted = false;
};

/// Reads the steps of a path from left to right.
class PathReader {
 public:
  PathReader(const std::string& path, const std::string& label) : path_(path), label_(label) {}

  std::vector<Step> read() {
    std::vector<Step> steps{read_key()};
    while (at_ < path_.size()) {
      if (steps.size() == kMostSteps)
        throw ConfigError({label_, 0, 0}, "a path of more than 64 keys; no config is as deep");
      if (path_[at_] == '[') {
        steps.push_back(read_index());
      } else if (path_[at_] == '.') {
        ++at_;
        steps.push_back(read_key());
      } else {
        fail();
      }
    }
    return steps;
  }

 private:
  [[noreturn]] void fail() const {
    throw ConfigError({label_, 0, 0}, "\"" + path_ +
                                          "\" is not a path of keys such as training.precision or "
                                          "links[0].bandwidth");
  }

  Step read_key() {
    const bool quoted = at_ < path_.size() && path_[at_] == '"';
    if (quoted) ++at_;
    const std::size_t end = quoted ? path_.find('"', at_) : path_.find_first_of(".[\"]", at_);
    if (quoted && end == std::string::npos) fail();
    Step step{path_.substr(at_, end == std::string::npos ? end : end - at_), std::nullopt, quoted};
    if (step.key.empty()) fail();
    at_ = end == std::string::npos ? path_.size() : end + (quoted ? 1 : 0);
    return step;
  }

  Step read_index() {
    const std::size_t end = path_.find(']', at_);
    if (end == std::string::npos) fail();
    const auto index = parse_integer(std::string_view(path_).substr(at_ + 1, end - at_ - 1));
    if (!index || *index < 0) fail();
    at_ = end + 1;
    return {"", static_cast<std::size_t>(*index), false};
  }

  const std::string& path_;
  const std::string& label_;
  std::size_t at_ = 0;
};

YamlValue null_at(const SourceLocation& where) {
  YamlValue value;
  value.where = where;
  return value;
}

struct Descent {
  YamlValue* value;
  std::size_t steps;  // of the path used
};

/// The item of a sequence of maps whose `name` is `name`.
YamlValue& item_named(YamlValue& sequence, const std::string& name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (YamlValue& item : sequence.items) {
    const YamlValue* found = find_entry(item, "name");
    if (found != nullptr && found->text == name) return item;
    if (found != nullptr) names.push_back(found->text);
  }
  std::string known;
  for (const std::string& other_name : names) known += (known.empty() ? "" : ", ") + other_name;
  throw ConfigError(where, "there is no item named \"" + name + "\" at " +
                               to_string(sequence.where) + "; " +
                               (names.empty() ? "name one by its number, as in [0]"
                                              : "use " + known + ", or a number, as in [0]"));
}

/// Follows the longest key that fits, or makes a new one.
Descent into_map(YamlValue& map, std::span<const Step> steps, const SourceLocation& where) {
  std::string key;
  Descent longest{nullptr, 0};
  for (std::size_t n = 0; n < steps.size() && !steps[n].index; ++n) {
    if (n > 0 && (steps[n].quoted || steps[n - 1].quoted)) break;
    key += (n > 0 ? "." : "") + steps[n].key;
    for (YamlEntry& entry : map.entries)
      if (entry.key == key) longest = {&entry.value, n + 1};
  }
  if (longest.value != nullptr) return longest;
  map.entries.push_back({steps[0].key, null_at(where), where});
  return {&map.entries.back().value, 1};
}

}  // namespace

void set_at(YamlValue& root, const std::string& path, YamlValue value, const std::string& label) {
  const SourceLocation where{label, 0, 0};
  const std::vector<Step> steps = PathReader(path, label).read();
  YamlValue* at = &root;
  for (std::size_t i = 0; i < steps.size();) {
    if (steps[i].index) {
      if (at->kind != YamlValue::Kind::Sequence || *steps[i].index >= at->items.size())
        throw ConfigError(where, "there is no item [" + std::to_string(*steps[i].index) + "] at " +
                                     to_string(at->where));
      at = &at->items[*steps[i++].index];
      continue;
    }
    if (at->kind == YamlValue::Kind::Sequence) {
      at = &item_named(*at, steps[i++].key, where);
      continue;
    }
    if (at->kind == YamlValue::Kind::Null) {
      *at = null_at(where);
      at->kind = YamlValue::Kind::Map;
    }
    if (at->kind != YamlValue::Kind::Map)
      throw ConfigError(where, "the key \"" + steps[i].key + "\" would lie in the value at " +
                                   to_string(at->where) + ", which is no map");
    const Descent next = into_map(*at, std::span(steps).subspan(i), where);
    at = next.value;
    i += next.steps;
  }
  *at = std::move(value);
}

}  // namespace pfeife
