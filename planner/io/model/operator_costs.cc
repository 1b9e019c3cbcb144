#include "planner/io/model/operator_costs.h"

#include "planner/ir/basics/error.h"

namespace pfeife {

std::vector<OperatorCost> operator_costs(const YamlNode& node) {
  std::vector<OperatorCost> costs;
  for (const auto& [name, entry] : node.entries()) {
    if (name.find("::") == std::string::npos)
      node.fail_at_key(name, "\"" + name +
                                 "\" has no namespace; write it as the archive does, for "
                                 "example my::op or aten::" +
                                 name);
    entry.check_keys({"flops", "bytes"});
    OperatorCost cost{.op = name};
    const auto formula = [&, &entry = entry](const char* key, std::string& text) {
      const auto found = entry.find(key);
      if (!found) return;
      text = found->as_string();
      if (text == "io" && std::string_view(key) == "bytes") return;
      try {
        check_formula(text);
      } catch (const ConfigError& error) {
        found->fail(error.what());
      }
    };
    formula("flops", cost.flops);
    formula("bytes", cost.bytes);
    costs.push_back(std::move(cost));
  }
  return costs;
}

YamlValue operators_value(const std::vector<OperatorCost>& costs) {
  std::vector<YamlEntry> entries;
  for (const OperatorCost& cost : costs)
    entries.push_back(
        {cost.op,
         yaml_map({{"flops", yaml_string(cost.flops), {}}, {"bytes", yaml_string(cost.bytes), {}}}),
         {}});
  return yaml_map(std::move(entries));
}

}  // namespace pfeife
