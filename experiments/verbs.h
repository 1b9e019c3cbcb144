// pfeife-exp VERB ...: what is asked about plans, traces, results and models without a config.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/io/files/shipped_files.h"

namespace pfeife {

/// Runs the verb that `arguments` (without the program's name) begin with, and gives its exit code;
/// nothing if they begin with none. Errors: ConfigError with the verb's usage.
std::optional<int> run_verb(const std::vector<std::string>& arguments);
std::vector<std::string> verb_names();

/// A file, or one that is shipped by its name. `what`: "model", for messages. Errors: ConfigError.
std::filesystem::path named_file(const std::string& name, const std::string& what,
                                 std::span<const ShippedFolder> folders);

}  // namespace pfeife
