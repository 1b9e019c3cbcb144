// What branch and bound did, written down so that others can check it: the tree of its regions with
// the weights that it used, and the paths behind the weights.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <variant>

#include "planner/ir/result/certificate.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Written by several threads at once, each its own nodes. Who comes first numbers nodes, paths and
/// moments, so that proof() numbers them anew.
class ProofRecord {
 public:
  struct Node {
    double bound = 0;
    CertifiedNode certified;
    std::array<std::size_t, 2> children{};  ///< of a split
  };
  /// A new node; the first one is the root.
  std::size_t add() {
    const std::lock_guard lock(mutex_);
    nodes_.emplace_back();
    return nodes_.size() - 1;
  }
  /// Stays where it is.
  Node& node(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return nodes_[index];
  }
  /// A path, or a moment at which memory excludes cuts.
  using Fact = std::variant<CertifiedMoment, CertifiedPath>;
  /// Its number in the record.
  std::uint32_t number(Fact fact);

  /// The part of the tree that proves `bound` (kNothingFits: that nothing fits).
  CertifiedProof proof(const ScheduleSpec& spec, std::int64_t bound) const;
  std::vector<std::int64_t> least_load;  ///< as in CertifiedProof
  bool linked = false;                   ///< likewise

 private:
  std::mutex mutex_;
  std::deque<Node> nodes_;
  std::map<Fact, std::uint32_t> number_;
  std::vector<const Fact*> facts_;  // by number
};

/// The problem's figures with the proofs; leaves out what the proofs do not need.
Certificate certificate_of(const Problem& problem, std::int64_t bound,
                           std::vector<CertifiedProof> proofs);

}  // namespace pfeife
