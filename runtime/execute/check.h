// Is a pipeline right? Its losses and gradients against the unsplit model's.
#pragma once

#include <optional>
#include <string>

#include "runtime/execute/rank_pipeline.h"

namespace pfeife {

/// How far a tensor is off.
struct Difference {
  std::string tensor;  ///< "" = none
  double value = 0;    ///< |g - g0| / |g0|
  double allowed = 0;
  /// The one that is farther off for what it is allowed exceeds the other.
  bool exceeds(const Difference& other) const;
};

struct CheckReport {
  std::size_t tensors = 0;  ///< gradients and losses compared
  std::size_t zeros = 0;    ///< of them, the unsplit model's gradients that are zero throughout
  Difference largest;
  Difference first_different;  ///< in the model's order; none if all are within what is allowed
  std::string broken_edge;     ///< of the DependencyGraph, by the measured trace; "" if none
  Trace trace;

  bool right() const { return first_different.tensor.empty() && broken_edge.empty(); }
};

/// Runs one step on this rank and compares on rank 0, which gets the gradients of the others and
/// runs the unsplit model itself. Every rank must call it; the report is rank 0's, empty elsewhere.
/// `tolerance` = largest |g - g0| / |g0| of a tensor; empty: what rounding explains
/// (rounding_allowed), by the coarsest type that a gradient passes from the loss on, its
/// parameter's included. With a loss scale both have it, begun as in
/// training and made smaller until the unsplit model's gradients are finite.
CheckReport check_pipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                           const RankOptions& options, std::optional<double> tolerance,
                           Transport& transport);

/// Largest |g - g0| / |g0| that rounding explains where `type` is the coarsest of the numbers that
/// g is computed from, a sum of so many microbatches' gradients.
double rounding_allowed(at::ScalarType type, std::size_t microbatches);

/// One or two lines for people.
std::string to_string(const CheckReport& report);

/// Sends the records of a step to rank 0; there, the records of all ranks, in their numbers.
std::vector<std::vector<TaskRecord>> gather_records(const std::vector<TaskRecord>& own,
                                                    std::uint64_t step, Transport& transport);

/// The records of one replica among these, by pipeline rank.
std::vector<std::vector<TaskRecord>> records_of_replica(
    const Pipeline& pipeline, std::span<const std::vector<TaskRecord>> records,
    std::size_t replica);

/// The number; a NaN without a sign, which an x86 gives it and programs print as "-nan".
double plain_nan(double number);

/// RuntimeFault if the loss of the step, counted from 1, is no finite number.
void require_finite(double loss, std::int64_t step);

/// Synthetic inputs for every microbatch of a step, equal on all ranks of a replica: its share of
/// the numbers that one pipeline would get for the whole batch.
StepInputs synthetic_step(const Pipeline& pipeline, std::uint64_t step, std::uint64_t seed,
                          const Placing& placing, std::size_t replica = 0);

}  // namespace pfeife
