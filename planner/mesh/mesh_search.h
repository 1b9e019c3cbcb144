// Which mesh? Meshes are alternatives of the same work: the same model, global batch and devices.
//
// Every combination of what the question leaves open is a candidate. A candidate is first bounded,
// by the work of its layers, then priced, in the order of the bounds, until no bound is below the
// best price. Priced are pipelines of balanced stages under 1f1b and interleaved_1f1b: the best of
// them is then what the planner of pipelines goes on with. Not modelled: what
// planner/mesh/mesh_price.h does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/mesh/activation_memory.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife {

struct MeshOutcome {
  MeshRun run;
  /// No pipeline of that mesh has a shorter step, whatever its schedule, but for those that hide
  /// collectives (OVERLAP_F_B).
  Nanoseconds bound{0};
  bool fits = false;       ///< what is reserved, in the memory of each device
  Nanoseconds step{0};     ///< estimated
  Bytes peak{0};           ///< allocated; largest over ranks
  Bytes reserved{0};       ///< reserved_by() of that
  Bytes limit{0};          ///< reserved_limit()
  MeshShares mean;         ///< over ranks
  Nanoseconds waiting{0};  ///< mean over ranks of the step less these
};

struct MeshAnswer {
  std::vector<MeshOutcome> priced;       ///< those that fit first, by step, then by peak
  Nanoseconds bound{0};                  ///< smallest of all meshes whose fixed memory fits
  std::size_t candidates = 0;            ///< that divide the model, the batch and the devices
  std::size_t without_memory = 0;        ///< whose parameters, gradients and state do not fit
  std::size_t ruled_out = 0;             ///< by their bound
  std::size_t without_times = 0;         ///< left out: the file of layer times lacks them
  std::string missing_times;             ///< of the first of those, what
  std::optional<PeakResidual> residual;  ///< of the question's measured peak
  bool found() const { return !priced.empty() && priced.front().fits; }
};

struct MeshSearchOptions {
  std::size_t threads = 1;
  bool all = false;                      ///< price every candidate: to check the bounds
  std::function<void(double)> progress;  ///< the share of candidates that is bounded and priced
};

/// Equal questions give equal answers, for any number of threads. Errors: ConfigError without a
/// place if no mesh divides what there is to divide: of the one that is nearest to it; if the
/// file of layer times has no mesh; and of peak_residual().
MeshAnswer find_mesh(const MeshQuestion& question, const Network& network,
                     const MeshSearchOptions& options = {});

/// Device memory less the reserve.
Bytes memory_limit(const Network& network);

/// What PyTorch's allocator reserves for so many allocated bytes of a rank, by a factor.
Bytes reserved_by(const MeshRun& run, const std::optional<AllocatorSettings>& allocator,
                  Bytes allocated);
/// What a rank may reserve: its device's memory less the question's reserve, else that of
/// mesh_device(), and less the margin.
Bytes reserved_limit(const MeshQuestion& question, const MeshRun& run, const Network& network);

/// Parameters, gradients and optimizer's state of the whole model, each once.
Bytes undivided_state(const MeshRun& run, const Network& network);

/// Why `other` is not the choice, in words: its memory, or the largest of its terms that are more
/// than those of `best`.
std::string why_not(const MeshOutcome& other, const MeshOutcome& best);

}  // namespace pfeife
