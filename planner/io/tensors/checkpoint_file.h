// checkpoint.json: what a checkpoint holds besides its tensors. Written last: a folder without it
// is no checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pfeife {

struct CheckpointInfo {
  std::string model_digest;
  std::string optimizer;                            ///< "adam", ...
  std::int64_t steps = 0;                           ///< done
  std::int64_t updates = 0;                         ///< of the optimizer
  std::uint64_t seed = 0;                           ///< of dropout and synthetic data
  std::int64_t next_sample = 0;                     ///< of the training data
  std::vector<std::string> model, optimizer_state;  ///< safetensors files beside it

  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

std::string checkpoint_text(const CheckpointInfo& info);
/// ConfigError if it is none.
CheckpointInfo read_checkpoint_info(const std::filesystem::path& file);

}  // namespace pfeife
