// What was measured of a model, sample by sample, and the file that keeps it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/optimizer.h"
#include "runtime/profile/node_passes.h"
#include "runtime/profile/profiler.h"
#include "runtime/profile/statistics.h"
#include "runtime/profile/step_times.h"

namespace pfeife {

// What the profiler has timed, and how a report follows from it.

/// Passes that are timed as a whole; F of a stage with B, and of one with I and W.
enum class Whole { Forward, Backward, SplitForward, BackwardInput, BackwardWeight, Optimizer };

/// Passes over all nodes with the clock on.
struct PassSamples {
  std::vector<Samples> nodes;  ///< [node]
  std::vector<bool> ran;       ///< [node]
  Samples outside;

  explicit PassSamples(std::size_t count) : nodes(count), ran(count) {}
  void add(const PassTimes& times);
};

struct ProfileSamples {
  ProfileSamples(std::size_t nodes, std::size_t parameters)
      : forward(nodes), input(nodes), weight(nodes), updates(parameters) {}

  std::array<Samples, 6> wholes;  ///< [Whole]
  PassSamples forward, input, weight;
  std::vector<Samples> updates;  ///< [parameter]
  StepTimes steps;  ///< the whole passes of each, by Whole; the optimizer's are left out
  StepTimes parts;  ///< PartSteps of one part, of several: by part_kind()
  StepTimes turns;  ///< PartSteps in turns: by Turn

  /// The kind of a PartSteps::Pass of the whole (no part), or of a part.
  static std::size_t part_kind(std::size_t pass, std::optional<std::size_t> part) {
    return 3 * (part ? *part + 1 : 0) + pass;
  }

  const Samples& whole(Whole pass) const { return wholes[static_cast<std::size_t>(pass)]; }
  void add(Whole pass, Nanoseconds time, bool interrupted);
  /// Adds the samples of `other`, of the same model and training: medians and variation are then of
  /// both, and the difference between the two is drift.
  void append(const ProfileSamples& other);

  /// Calls each(Samples&) for all there are, in an order that depends on the model alone.
  template <class Self, class Each>
  static void for_each(Self& self, const Each& each) {
    for (auto& samples : self.wholes) each(samples);
    for (auto* passes : {&self.forward, &self.input, &self.weight}) {
      for (auto& samples : passes->nodes) each(samples);
      each(passes->outside);
    }
    for (auto& samples : self.updates) each(samples);
  }
};

/// Times of nodes and parameters that add up to those of the whole passes, bytes from `memory` and
/// `state`. The profile's description (graph, device, origin) is left to the caller.
ProfileReport report_of(const ProfileSamples& samples, const NodeMemory& memory,
                        const OptimizerState& state);

// What a profile was computed from, kept between calls: so a profile can be taken in several shares
// over the time that it is to speak for.
//
// The first line is a title, the second says what was timed; then come the times, ns, as text.

/// Writes the samples. `timed`: one line that says what they are of. Errors: RuntimeFault.
void write_samples(const std::string& file, const std::string& timed,
                   const ProfileSamples& samples);

/// The samples of a model of so many nodes and parameters; nothing if there is no such file.
/// Errors: ConfigError if they are of something else than `timed`, or the file is not whole.
std::optional<ProfileSamples> read_samples(const std::string& file, const std::string& timed,
                                           std::size_t nodes, std::size_t parameters);

}  // namespace pfeife
