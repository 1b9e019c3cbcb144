// What the measurements of card_probe share: the device, how much to measure, and answers as JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"
#include "runtime/device/device.h"
#include "runtime/execute/rank_pipeline.h"
#include "runtime/transport/transport.h"

namespace pfeife::card {

struct Probe {
  at::Device device = at::kCPU;
  bool stand_in = false;
  std::filesystem::path out;      ///< the answer, written again after each part of it
  std::filesystem::path files;    ///< the folder that holds configs/
  std::filesystem::path cluster;  ///< the card's own cluster file; may not exist yet
  std::string model;
  std::string precision;  ///< "" = all
  std::size_t ranks = 2;
  int repetitions = 5;

  /// "stand_in" or the card's name.
  std::string name() const;
  /// Writes the answer so far, with the device and whether it is a stand-in.
  void write(nlohmann::json answer) const;
};

/// A model of configs/models; "NAME:K" has only the first K of its layers ("...layers.N...").
struct ProbedModel {
  ProbedModel(const Probe& probe, const std::string& name);
  Graph graph;
  WeightSource source;
};

/// How a precision is executed: TF32 for the process, autocast for a rank.
void set_precision(Precision precision, RankOptions& rank);
Precision precision_named(const std::string& name);
/// The precision of Probe::precision, or all that are asked for.
std::vector<std::string> precisions_of(const Probe& probe, std::vector<std::string> all);

/// What the device did while `work` ran; the device is idle before and after.
struct Launches {
  std::size_t kernels = 0, copies = 0, sets = 0, waits = 0;
  double kernel_ms = 0;  ///< of the kernels together
};
Launches count_launches(const Probe& probe, const std::function<void()>& work);
nlohmann::json to_json(const Launches& launches);

/// Median time of one run of `work`, each over as many runs as fill 20 ms, the device idle before
/// and after.
Nanoseconds time_of(at::Device device, const std::function<void()>& work);

// The measurements, each a verb of card_probe.
void probe_assumptions(const Probe& probe);
void probe_one_rank(const Probe& probe);
void probe_ranks(const Probe& probe);
void probe_speed(const Probe& probe);
void probe_profile(const Probe& probe);
void probe_nccl(const Probe& probe);

}  // namespace pfeife::card
