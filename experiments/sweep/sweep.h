// All cases of an experiment: which are to be computed, computing them, gathering what there is.
//
// The folder of results is its own cache: a case is done if its folder has a case.json with the
// digest of its inputs, and files.sha256 with those of its files as they are. The two are written
// last, and every file appears whole; so a process may die at any point, and the next one goes on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/results/results.h"

namespace pfeife {

struct SweepOptions {
  std::filesystem::path out;
  std::size_t jobs = 1;   ///< processes and threads at once
  std::size_t shard = 0;  ///< of `shards`, from 0: cases with number % shards == shard
  std::size_t shards = 1;
  bool force = false;                ///< compute again what is there
  bool quiet = false;                ///< no progress
  bool search_times = false;         ///< a note for each case on where its search's time went
  std::vector<std::string> columns;  ///< of results.md and results.tex; empty = the usual ones
};

/// A case whose process died, or met a defect. Nothing is kept of it; the next call tries again.
struct FailedCase {
  std::string name, reason;
};

struct SweepResult {
  std::vector<CaseRecord> cases;  ///< of this shard, in the order of the experiment
  std::size_t computed = 0;       ///< now; the others were there
  std::vector<FailedCase> failed;
  bool stopped = false;  ///< by end_children(), before all was computed: nothing was gathered
};

/// The record of a case in `folder`, if it was made from these inputs and all its files are as
/// they were written.
std::optional<CaseRecord> find_record(const std::filesystem::path& folder,
                                      const std::string& digest);

/// Which plans of the case could not be measured, and why, a sentence each. Such a case is kept,
/// but a later call computes it again.
std::vector<std::string> failures(const CaseRecord& record);

/// Computes what is missing, then (unless it is a shard) writes results.csv, results.json and
/// report.html if anything changed. A case that fails is left out. Ends early after end_children()
/// (child.h). Errors: ConfigError, RuntimeFault; what was finished before stays.
SweepResult sweep(const Experiment& experiment, Inputs& inputs, const SweepOptions& options);

}  // namespace pfeife
