// A proof that no plan of a class is faster than a bound, as a plain value: the problem, and for
// each schedule a tree of regions of cuts with weights of paths. planner/schedule_tool/certify.h
// says what it claims and judges it; planner/io/certificate_file.h writes and reads it.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "planner/ir/cluster.h"
#include "planner/ir/layers.h"
#include "planner/ir/schedule.h"

namespace pfeife {

/// A path through the dependencies of a schedule on a chain of stages, from the last task of a rank
/// backwards: `turns` alternates numbers of steps to the task before on the rank and letters, f or
/// b = over the forward or backward transfer that the task waits for. "9f12b0f3".
struct CertifiedPath {
  std::uint32_t rank = 0;
  std::string turns;
  friend bool operator==(const CertifiedPath&, const CertifiedPath&) = default;
};

/// Weights that turn a region into one bound: of paths (numbers of CertifiedProof::paths), and of
/// what ranks hold while they do an action (number in the rank's compute-only row).
struct CertifiedWeights {
  struct OfPath {
    std::uint32_t path = 0;
    std::int64_t weight = 0;
    friend bool operator==(const OfPath&, const OfPath&) = default;
  };
  struct OfMemory {
    std::uint32_t rank = 0, action = 0;
    std::int64_t weight = 0;
    friend bool operator==(const OfMemory&, const OfMemory&) = default;
  };
  std::vector<OfPath> paths;
  std::vector<OfMemory> memory;
  friend bool operator==(const CertifiedWeights&, const CertifiedWeights&) = default;
};

/// A region of cuts. Its weights are applied in turn: positions that only lie on cuts that are not
/// faster than the bound leave the region. If something is left it is tried cut by cut (`Each`) or
/// split in two, whose nodes follow: load of stage `at` <= or > threshold, position of boundary
/// `at` <= or > threshold.
struct CertifiedNode {
  enum class Then : std::uint8_t { Nothing, Each, SplitLoad, SplitPosition };
  std::vector<CertifiedWeights> weights;
  Then then = Then::Nothing;
  std::uint32_t at = 0;
  std::int64_t threshold = 0;
  friend bool operator==(const CertifiedNode&, const CertifiedNode&) = default;
};

struct CertifiedProof {
  ScheduleSpec spec;
  /// Only cuts are meant whose stages all take at least so many ns for F and B of a microbatch;
  /// empty = all cuts.
  std::vector<std::int64_t> least_load;
  std::vector<CertifiedPath> paths;
  std::vector<CertifiedNode> tree;  ///< in preorder
  friend bool operator==(const CertifiedProof&, const CertifiedProof&) = default;
};

struct Certificate {
  static constexpr std::int64_t kNothingFits = std::numeric_limits<std::int64_t>::max();

  Layers layers;    ///< names left out
  Cluster cluster;  ///< the devices of the ranks, overheads and paths only
  std::vector<DeviceId> device_of_rank;
  std::vector<Bytes> memory_limit;    ///< [rank]
  std::int64_t bound = kNothingFits;  ///< ns; no plan that fits is faster (kNothingFits: none fits)
  std::vector<CertifiedProof> proofs;
  friend bool operator==(const Certificate&, const Certificate&) = default;
};

}  // namespace pfeife
