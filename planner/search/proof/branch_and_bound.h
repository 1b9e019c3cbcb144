// Proof that no cuts of one schedule are faster than a given time, and better cuts on the way.
//
// Every node is a box of stage loads and boundary ranges. Its bound: PathMaster chooses weights of
// longest paths, CutBound the smallest weighted sum over all cuts of the node. The cuts that attain
// it are candidates, their longest path joins the master. Best bound first.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "planner/search/bound/cut_bound.h"
#include "planner/search/bound/cut_mixture.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/bound/relaxation.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

class BranchAndBound {
 public:
  struct Settings {
    std::size_t enumerate = 512;  ///< nodes with at most so many cuts are tried one by one
    bool record = false;          ///< keep what a certificate needs
    double few_cuts = 1e6;        ///< if there are no more, the proof covers them all
  };
  explicit BranchAndBound(Candidates& candidates) : BranchAndBound(candidates, Settings{}) {}
  BranchAndBound(Candidates& candidates, const Settings& settings);

  /// Bounds the whole space. `target`: only cuts faster than this matter (infinite: all). May be
  /// called again with a smaller target.
  void bound_root(double target);
  /// Before any node is handled: raises the bound of the whole space by the best weights of a
  /// mixture of cuts (CutMixture), with which all nodes begin. Does nothing where stages are many.
  void strengthen_root(double target);
  /// Handles up to `nodes` open nodes with cuts faster than `target` in view; stops when there is
  /// none, or when `most` ns were spent on cuts that reserve too much.
  void run(std::size_t nodes, double target, double most = std::numeric_limits<double>::infinity());

  /// Deals the open nodes to at most so many parts, which may run() at once and know nothing of
  /// each other: fewer if there are few nodes. The first is this one. Until join() only run() may
  /// be called of any, and strengthen_root() of this one.
  std::vector<BranchAndBound*> deal(std::size_t most);
  /// Takes back the open nodes, and what the parts have found, in their order.
  void join();

  /// No cuts of the schedule that meet the memory limits are faster than this, or than the target
  /// of the last call if that is smaller. Infinite: none meet the limits.
  double bound() const;
  /// Nothing is left: what is faster than the target, if anything, has been offered.
  bool closed() const { return open_.empty() && rooted_; }
  std::size_t nodes() const { return handled_; }
  /// About how many ns the proof has taken: counted, not measured.
  double work() const { return cut_bound_.work() + relaxation_.work() + other_work_; }
  /// The bound is for cuts whose stages all take at least this share of the mean load.
  double least_share() const { return least_share_; }
  /// The bound is for cuts whose neighbouring stages are linked (CutBound::linked_only).
  bool linked_only() const { return linked_only_; }
  /// The bound is for cuts whose neighbouring stages are linked because they take that share.
  bool always_linked() const { return always_linked_; }
  /// Cuts near the latest node's loads, to search on from: fast for their memory. May be empty.
  const Cuts& nearest() const { return nearest_; }
  /// What proves `bound`, if bound() is not below it; needs Settings::record.
  CertifiedProof certificate(std::int64_t bound) const {
    return record_.proof(candidates_.spec(), bound);
  }

 private:
  struct Node {
    CutRegion region;
    double bound = 0;
    std::uint32_t depth = 0;
    std::uint64_t id = 0;
    std::size_t record = 0;
    std::shared_ptr<const RowWeights> weights{};  // the best known for a region around it
  };
  struct Later {
    bool operator()(const Node& a, const Node& b) const;
  };
  enum class Verdict { Closed, Open };
  struct Part {};  // the constructor of a part of `whole`
  BranchAndBound(const BranchAndBound& whole, Part);

  /// Never infinite: whatever fits is faster than Candidates::kTooFull.
  double target() const {
    return std::min({target_, candidates_.best_time(), Candidates::kTooFull});
  }
  double least(double scaled, double weight_sum) const;
  Verdict close(Node& node, double bound);
  void restrict_class(CutRegion& region);
  void bound_stages(Node& root);
  Verdict tighten_root(Node& root);
  void record_class(const CutRegion& root);
  void record_weights(Node& node);
  bool offer(const Cuts& cuts);
  void offer_nearest();
  Verdict improve(Node& node, std::size_t rounds);
  double tolerance(const Node& node) const;
  Verdict raise(Node& node, std::size_t rounds);
  bool can_mix() const;
  Verdict mix(Node& node, std::size_t minima);
  std::optional<CutBound::Minimum> minimum();
  Verdict inherit(Node& node);
  void respond(const Cuts& cuts);
  double bound_of(const CutBound::Minimum& minimum, double weight_sum) const;
  bool enumerate();
  struct Threshold {
    double at = 0, worth = 0;
  };
  Threshold threshold(std::size_t stage) const;
  void split(const Node& node);
  std::size_t push(CutRegion region, const Node& parent);
  Node pop();

  std::unique_ptr<Candidates> own_candidates_;  // of a part
  Candidates& candidates_;
  Settings settings_;
  CutBound cut_bound_;
  std::unique_ptr<ProofRecord> own_record_;  // of the whole
  ProofRecord& record_;
  Relaxation relaxation_;
  Cuts nearest_;
  std::vector<Cuts> responses_;                   // of the present node
  CertifiedWeights last_weights_, best_weights_;  // of the present node
  std::vector<CutMixture::Spread> spread_;        // of the present node's mixture, if it has one
  std::shared_ptr<const RowWeights> best_;  // those that give the present node's highest bound,
  double best_bound_ = 0;                   // which is this
  double last_sum_ = 0, last_bound_ = 0;    // of the last minimum: its weights' sum, its bound
  std::vector<Node> open_;                  // heap
  double target_, least_share_ = 0;
  double closed_bound_;  // smallest bound of nodes that were closed by it
  bool rooted_ = false, linked_only_ = false, always_linked_ = false;
  std::uint64_t next_id_ = 0;
  std::size_t handled_ = 0;
  double other_work_ = 0;                               // of mixtures and of parts
  double joined_work_ = 0;                              // of a part: what the whole knows of
  std::vector<std::unique_ptr<BranchAndBound>> parts_;  // beside this one
  std::size_t dealt_ = 0;                               // of them, at present
};

}  // namespace pfeife
