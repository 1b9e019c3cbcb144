// What cases are computed from: the files, their digests, and the values read from them, each once.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "planner/inputs/read_layers.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// The files that a case's model is made of.
ModelFiles model_files(const CaseConfig& config);
/// How the case trains it. Where the order of its nodes is to be found, one is as good as another
/// to begin with.
ModelUse model_use(const CaseConfig& config);

class Inputs {
 public:
  /// Reads a cluster's file. Errors: ConfigError.
  const Cluster& cluster(const InputFile& file);
  /// The cluster of a case, with the overheads of stages that its profile has measured. Errors:
  /// ConfigError.
  const Cluster& cluster(const CaseConfig& config);

  /// The model of a case with costs for every device kind of its cluster. Errors: ConfigError.
  const Layers& layers(const CaseConfig& config);

  /// The same where the microbatch size is not the user's; nullptr if the model has none of that
  /// size: only archives with a symbolic batch do. May be called from several threads.
  const Layers* other_layers(const CaseConfig& config);

  /// What the model of a case computes; nullptr of one that only has times. May be called from
  /// several threads.
  const ModelWork* work(const CaseConfig& config);

  /// SHA-256 of everything that decides a case: the resolved config, the bytes of every file,
  /// the sources of this program (source_digest.h).
  std::string digest(const CaseConfig& config);

 private:
  const LayersAndWork& model(const CaseConfig& config);
  const std::string& file_digest(const std::filesystem::path& file);

  std::mutex other_sizes_;                       // of other_layers and work
  std::map<std::string, Cluster> clusters_;      // by file, what is replaced, the profile
  std::map<std::string, LayersAndWork> models_;  // by what they are made from
  std::map<std::filesystem::path, std::string> digests_;
};

}  // namespace pfeife
