// How far predictions of this program were from steps that others have measured and published: what
// is known of the error of a figure. From the studies' own files (experiments/studies).
#pragma once

#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/request/request.h"

namespace pfeife {

/// Measured steps of published runs over those predicted, less 1: nine of ten runs lie between, of
/// fewer than twenty all.
struct KnownError {
  std::size_t runs = 0;
  double shortest = 0, longest = 0;
  std::string runs_of;  ///< "meshes of A100"
  /// What the runs are not like: "in BF16 on CPUs"; "" = they are of the kind that was asked about.
  std::string unlike = "";
};

/// What is known of meshes of dense models or of models with experts on such devices, by their peak
/// in half precision: of A100, of H100 and H200, of Blackwell; else of all. Where no run had
/// experts, of dense models.
KnownError error_of_meshes(const DeviceKind& kind, bool experts);
/// What is known of pipelines whose times follow from published figures of the devices, in such a
/// precision: TF32, or FP16 under autocast, which stands for BF16, too; else of both.
KnownError error_of_pipelines(Precision precision, DeviceType type);

/// "steps of published meshes of A100 were 6 % shorter to 32 % longer than predicted so (nine
/// tenths of 94 runs)"; what the runs are not like stands in front.
std::string to_string(const KnownError& error);

/// What is known of the error of the cases' times, a sentence; "" if they were measured, calibrated
/// or are a table's.
std::string error_of(const Request& request, const Cluster& cluster);

}  // namespace pfeife
