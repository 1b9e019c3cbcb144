// pfeife-run profile: what a model's nodes cost on this machine, or what the machine's links do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/start_ranks.h"

namespace pfeife {

struct ProfileRequest {
  std::string model;               ///< .pt2
  std::string out;                 ///< profile.yaml; "" = none
  std::string device = "cpu";
  std::string device_kind = "x86_core";
  std::string precision = "fp32", optimizer = "adam";
  std::optional<std::int64_t> microbatch_size;  ///< empty = as exported
  int repetitions = 0;             ///< 0 = as many as fit into some seconds
  int microbatches = 4;  ///< of each step that is timed
  int beside = 0;        ///< other processes that do the same meanwhile
  std::uint64_t seed = 0;
  LaunchOptions launch;
};

/// Measures, writes the file, prints how well it adds up, and returns the exit code.
int profile_verb(const ProfileRequest& request);

}  // namespace pfeife
