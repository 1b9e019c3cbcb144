// pfeife-exp VERB ...: what helps to write a config.
#pragma once

#include <string>
#include <vector>

namespace pfeife {

// Each takes what stands behind the verb and returns the exit code. Errors: ConfigError.

/// `check CONFIG [--set KEY.PATH=VALUE]...`: reads config, models and clusters, and plans nothing.
int check_config(const std::vector<std::string>& arguments);
/// `init MODEL CLUSTER [--out FILE]`: writes a commented config.
int init_config(const std::vector<std::string>& arguments);
/// `schema config|cluster|architecture`: prints a JSON Schema for editors.
int print_schema(const std::vector<std::string>& arguments);
/// `completion bash|zsh`: prints a script for the shell.
int print_completion(const std::vector<std::string>& arguments);

}  // namespace pfeife
