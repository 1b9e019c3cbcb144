// Which rank this process is, as launchers say it: ours, torchrun, Open MPI's mpirun, Slurm's srun.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "planner/ir/basics/ids.h"
#include "runtime/launch/meeting.h"

namespace pfeife {

struct RankEnvironment {
  RankId rank;
  std::size_t ranks = 0;
  int local = 0;              ///< number among the ranks of this host, where the launcher says it
  std::string size_variable;  ///< that told `ranks`, for messages
  std::optional<int> shared;  ///< descriptor of our own launcher's memory; empty = another's
  StoreAddress store;         ///< where the ranks meet without that
  std::string secret;         ///< PFEIFE_SECRET, as in JoinOptions; our own launcher sets it
};

/// The value of an environment variable, or nullptr.
using Variables = std::function<const char*(const char*)>;

/// Empty if no launcher started this process. In this order: our own launcher (PFEIFE_MEETING);
/// RANK, WORLD_SIZE; OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE: each of the two with MASTER_ADDR
/// and MASTER_PORT; a step of Slurm with several tasks (SLURM_STEP_ID, SLURM_PROCID, SLURM_NTASKS):
/// the store is at MASTER_ADDR, else on the first host of SLURM_STEP_NODELIST (or
/// SLURM_JOB_NODELIST), at MASTER_PORT, else a port made of the job's and step's numbers.
/// ConfigError naming what is missing or no number.
std::optional<RankEnvironment> rank_environment(const Variables& variables);
/// The environment of this process.
std::optional<RankEnvironment> rank_environment();

/// "node07" of "node[07-12,20],other3": Slurm's notation for lists of hosts.
std::string first_host(const std::string& list);

}  // namespace pfeife
