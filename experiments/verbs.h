// pfeife-exp VERB ...: what is asked about plans, traces, results and models without a config.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pfeife {

/// Runs the verb that `arguments` (without the program's name) begin with, and gives its exit code;
/// nothing if they begin with none. Errors: ConfigError with the verb's usage.
std::optional<int> run_verb(const std::vector<std::string>& arguments);

}  // namespace pfeife
