// A proof that no plan of a class is faster than a bound: the problem, and for each schedule a tree
// of regions of cuts with weights of paths. Judged by planner/schedule_tool/certify.h.
//   if (planned.certificate) std::printf("%zu proofs\n", planned.certificate->proofs.size());
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// A path through the dependencies of a schedule on a chain of stages, from the last task of a rank
/// backwards, a letter for each step: r = to the task before on the rank, f or b = to the forward
/// or backward transfer that the task waits for, d = to the compute task whose value it needs.
/// "rrrfdrrbd".
///
/// A proof of any order has no such path, but a row: what comes before and after a rank's work. A
/// letter for each stage that the first microbatch passes on its way (f = its F and the transfer to
/// the next count, s = neither does, which must come first), for each that it comes back to (b, for
/// which it passes all stages on its way forward) and for each that the last microbatch goes back
/// over when the rank has done its work (d). The rank's own work of the lowest stages (a letter l
/// for each) and of the highest (h) does not count: it need not wait for the microbatch, or the way
/// back not for it. "ssff", "bbd", "fflh".
struct CertifiedPath {
  std::uint32_t rank = 0;
  std::string turns;
  friend auto operator<=>(const CertifiedPath&, const CertifiedPath&) = default;
};

/// A rank while it does an action (number in its compute-only row): what it then holds must fit.
struct CertifiedMoment {
  std::uint32_t rank = 0, action = 0;
  friend auto operator<=>(const CertifiedMoment&, const CertifiedMoment&) = default;
};

/// The weight of a moment or a path, by its number in the proof: moments first.
struct CertifiedWeight {
  std::uint32_t fact = 0;
  std::int64_t weight = 0;
  friend bool operator==(const CertifiedWeight&, const CertifiedWeight&) = default;
};
/// Weights that turn a region into one bound.
using CertifiedWeights = std::vector<CertifiedWeight>;

/// A region of cuts: for each stage and end, where the stage may begin. The weights are applied in
/// turn: stages that only lie on cuts that are not faster than the bound, or that do not fit at a
/// moment of the proof, leave the region. If something is left it is tried cut by cut (`Each`) or
/// split in two, whose nodes follow: load (ns for F and B of a microbatch) of the stage <= or >
/// threshold, end of the stage (number of a legal boundary, 0 = before the first layer) likewise.
struct CertifiedNode {
  enum class Then : std::uint8_t { Nothing, Each, SplitLoad, SplitEnd };
  std::vector<CertifiedWeights> weights;
  Then then = Then::Nothing;
  std::uint32_t stage = 0;
  std::int64_t threshold = 0;
  friend bool operator==(const CertifiedNode&, const CertifiedNode&) = default;
};

struct CertifiedProof {
  ScheduleSpec spec;
  /// [stage] Only cuts are meant whose stages take at least so many ns for F and B of a microbatch.
  std::vector<std::int64_t> least_load;
  std::vector<CertifiedMoment> moments;
  std::vector<CertifiedPath> paths;
  std::vector<CertifiedNode> tree;  ///< in preorder
  /// Only cuts are meant whose neighbouring stages, if on different ranks, send values and get
  /// gradients back.
  bool linked = false;
  /// Whatever the order of the actions: the schedule gives the placement and the number of
  /// microbatches alone. No cuts are tried one by one.
  bool any_order = false;
  friend bool operator==(const CertifiedProof&, const CertifiedProof&) = default;
};

struct Certificate {
  static constexpr std::int64_t kNothingFits = std::numeric_limits<std::int64_t>::max();

  Layers layers;    ///< names left out
  Cluster cluster;  ///< the devices of the ranks, overheads and paths only
  std::vector<DeviceId> device_of_rank;
  std::vector<Bytes> memory_limit;  ///< [rank]
  Recompute recompute = Recompute::None;
  StepNorm norm = StepNorm::None;     ///< what the optimizer steps of plans wait for, at least
  std::int64_t bound = kNothingFits;  ///< ns; no plan that fits is faster (kNothingFits: none fits)
  std::vector<CertifiedProof> proofs;
  friend bool operator==(const Certificate&, const Certificate&) = default;
};

/// The problem of a certificate, yet without bound and proofs. Leaves out what no proof needs:
/// names, why there is no cut, devices of no rank, what is allowed for beside the costs of stages.
Certificate certified_problem(const Layers& layers, const Cluster& cluster,
                              const std::vector<DeviceId>& device_of_rank,
                              const std::vector<Bytes>& memory_limit, Recompute recompute,
                              StepNorm norm);

}  // namespace pfeife
