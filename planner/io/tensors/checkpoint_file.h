// checkpoint.json: what a checkpoint holds besides its tensors, and the SHA-256 of every file, its
// own included. Written last: a folder without it is no checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/ir/model/optimizer_options.h"

namespace pfeife {

struct CheckpointInfo {
  std::string model_digest;
  OptimizerOptions optimizer;                       ///< that training continues with
  std::int64_t steps = 0;                           ///< done
  std::int64_t updates = 0;                         ///< of the optimizer
  std::uint64_t seed = 0;                           ///< of dropout and synthetic data
  std::string dataset;                              ///< digest of the training data; "" = synthetic
  std::int64_t samples = 0;                         ///< of the training data
  bool shuffle = false;                             ///< each epoch in an order of its own
  std::int64_t epoch = 0;                           ///< of the next sample, from 0
  std::int64_t next_sample = 0;                     ///< its place in the epoch's order
  double loss_scale = 0;                            ///< of fp16_amp; 0 = none
  std::int64_t good_steps = 0;                      ///< since it last changed
  std::vector<std::string> model, optimizer_state;  ///< safetensors files beside it
  std::map<std::string, std::string> digests;       ///< SHA-256 of every other file by its name

  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

std::string checkpoint_text(const CheckpointInfo& info);
/// ConfigError if it is none, or not the text that was written.
CheckpointInfo read_checkpoint_info(const std::filesystem::path& file);

/// ConfigError at the first of the named files in `folder` that is missing or not what
/// `info.digests` says.
void require_digests(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const std::vector<std::string>& names);

}  // namespace pfeife
