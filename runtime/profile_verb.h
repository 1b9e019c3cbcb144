// pfeife-run profile: what a model's nodes cost on this machine, or what the machine's links do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/launch/start_ranks.h"

namespace pfeife {

struct ProfileRequest {
  std::string model;    ///< .pt2
  std::string out;      ///< profile.yaml; "" = none
  std::string samples;  ///< ProfileOptions::samples
  std::string device = "cpu";
  std::string device_kind;  ///< "" = x86_core on a CPU, else an error
  std::string precision = "fp32", optimizer = "adam";
  std::optional<std::int64_t> microbatch_size;  ///< empty = as exported
  int repetitions = 0;                          ///< 0 = as many as fit into some seconds
  int microbatches = 4;                         ///< of each step that is timed
  int beside = 0;                               ///< other processes that do the same meanwhile
  std::uint64_t seed = 0;
  LaunchOptions launch;
};

struct LinksRequest {
  std::string out;  ///< cluster.yaml; "" = it is printed
  std::string device_kind = "x86_core";
  int devices = 2;  ///< of the cluster; two of them are measured
  LaunchOptions launch;
};

/// Measures, writes the file, prints how well it adds up, and returns the exit code.
int profile_verb(const ProfileRequest& request);

/// Measures two ranks of this machine and the link between them, both at once, and writes a cluster
/// file. Returns the exit code.
int links_verb(const LinksRequest& request);

}  // namespace pfeife
