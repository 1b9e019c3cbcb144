// What cases are planned from, read once; the rules of a config; the digest of the program.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "planner/inputs/read_layers.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

// Which program made a result: digests of its sources, computed when it is built. A result of other
// sources is none of this program's.

/// SHA-256 over the sources of what plans, estimates and simulates; equal for every build of them.
const char* planning_sources();
/// The same of what measures.
const char* runtime_sources();

// What cases are computed from: the files, their digests, and the values read from them, each once.

/// The case with other wishes.
CaseConfig with_request(CaseConfig config, const Request& request);

/// How a request's model is trained. Where the order of its nodes is to be found, one is as good as
/// another to begin with.
ModelUse model_use(const Request& request);
/// The model's layers, with costs for every device kind of the cluster. Errors: ConfigError.
LayersAndWork read_model(const Request& request, const Cluster& cluster);
/// The cluster as the request's pipeline has it: with the overheads of stages that its profile has
/// measured, and shared by its replicas. Errors: ConfigError.
Cluster as_measured(const Cluster& cluster, const Request& request);

class Inputs {
 public:
  /// The cluster of a case's file. Errors: ConfigError.
  const Cluster& as_published(const CaseConfig& config);
  /// The same, calibrated.
  const Cluster& as_calibrated(const CaseConfig& config);
  /// The same as the case's pipeline has it, as_measured().
  const Cluster& cluster(const CaseConfig& config);
  /// What the files of a mesh's pipeline hold, which are for people and for those who judge its
  /// plans: they are not read.
  void know(const CaseConfig& pipeline, Layers layers, Cluster cluster);
  /// What is replaced in the cluster's file, its calibration included.
  Replaced replaced(const CaseConfig& config);

  /// The model of a case with costs for every device kind of its cluster. Errors: ConfigError.
  const Layers& layers(const CaseConfig& config);

  /// The layers for other wishes in a case's files: nullptr if the model has none of that
  /// microbatch size, as only archives with a symbolic batch have others than their own. May be
  /// called from several threads. Borrows both.
  std::function<const Layers*(const Request&)> layers_of(const CaseConfig& config);

  /// What the model of a case computes for a request in the case's files; nullptr of one that only
  /// has times. May be called from several threads.
  const ModelWork* work(const CaseConfig& config, const Request& request);

  /// SHA-256 of everything that decides a case: the resolved config, the bytes of every file,
  /// the sources of this program (planning_sources()).
  std::string digest(const CaseConfig& config);

 private:
  const Cluster& read(const std::filesystem::path& file, const Replaced& replaced);
  std::string model_key(const CaseConfig& config);
  const LayersAndWork& model(const CaseConfig& config);
  const std::string& file_digest(const std::filesystem::path& file);

  std::mutex other_sizes_;                       // of layers_of and work
  std::map<std::string, Cluster> clusters_;      // by file, what is replaced, the profile
  std::map<std::string, LayersAndWork> models_;  // by what they are made from
  std::map<std::filesystem::path, std::string> digests_;
};

// What a config's reader has to know of families, orders and the files that the config names.

/// Reads clusters by `inputs`, which must outlive it.
ExperimentRules rules_of(Inputs& inputs);

}  // namespace pfeife
