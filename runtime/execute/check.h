// Is a pipeline right? Its losses and gradients against the unsplit model's.
#pragma once

#include <string>

#include "runtime/execute/rank_pipeline.h"

namespace pfeife {

struct CheckReport {
  std::size_t tensors = 0;      ///< gradients and losses compared
  std::size_t zeros = 0;        ///< of them, the unsplit model's gradients that are zero throughout
  double largest = 0;           ///< largest |g - g0| / |g0|
  std::string largest_tensor;   ///< whose
  std::string first_different;  ///< in the model's order; "" if all are within the tolerance
  double first_difference = 0;
  std::string broken_edge;  ///< of the DependencyGraph, by the measured trace; "" if none
  Trace trace;

  bool right() const { return first_different.empty() && broken_edge.empty(); }
};

/// Runs one step on this rank and compares on rank 0, which gets the gradients of the others and
/// runs the unsplit model itself. Every rank must call it; the report is rank 0's, empty elsewhere.
/// `tolerance` = largest |g - g0| / |g0| of a tensor. With a loss scale both have it, begun as in
/// training and made smaller until the unsplit model's gradients are finite.
CheckReport check_pipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
                           const RankOptions& options, double tolerance, Transport& transport);

/// One or two lines for people.
std::string to_string(const CheckReport& report, double tolerance);

/// Sends the records of a step to rank 0; there, the records of all ranks, in their numbers.
std::vector<std::vector<TaskRecord>> gather_records(const std::vector<TaskRecord>& own,
                                                    std::uint64_t step, Transport& transport);

/// Of these the records of one replica, by pipeline rank.
std::vector<std::vector<TaskRecord>> records_of_replica(
    const Pipeline& pipeline, std::span<const std::vector<TaskRecord>> records,
    std::size_t replica);

/// RuntimeFault if the loss of the step, counted from 1, is no finite number.
void require_finite(double loss, std::int64_t step);

/// Synthetic inputs for every microbatch of a step, equal on all ranks of a replica: its share of
/// the numbers that one pipeline would get for the whole batch.
StepInputs synthetic_step(const Pipeline& pipeline, std::uint64_t step, std::uint64_t seed,
                          const Placing& placing, std::size_t replica = 0);

}  // namespace pfeife
