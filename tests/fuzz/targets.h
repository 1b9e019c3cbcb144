// The readers that are fuzzed: a table line each.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pfeife {

/// What the mutations know of a reader's input besides that it is bytes.
enum class InputKind { Text, Json, Zip };

struct FuzzTarget {
  std::string name;
  InputKind kind = InputKind::Text;
  /// Reads `input`. May throw ConfigError (then the input was refused) and nothing else. `folder`
  /// is one of its own, for readers that want a file.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> read;
  std::vector<std::string> seeds;  ///< valid inputs, as paths from the root of the repository
  int iterations = 1000;           ///< in the default run; less for slow readers
};

const std::vector<FuzzTarget>& fuzz_targets();

/// Reads one input as the driver and libFuzzer do: a refusal is fine, anything else that is thrown
/// is reported and ends the program.
void fuzz_one(const FuzzTarget& target, const std::string& input,
              const std::filesystem::path& folder);

}  // namespace pfeife
