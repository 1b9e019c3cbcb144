// Lower bounds of what stages cost wherever the layers are cut, as sums at the legal boundaries:
// what a proof over all cuts reckons with. What one choice of cuts costs exactly: stage_costs.h.
//
// A *position* numbers the legal boundaries: 0 is before the first layer, the last one after the
// last layer, those between are the legal cuts.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "planner/cost/stages/timed_message.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

class StageBounds {
 public:
  /// Times (ns) of F, I and W of a microbatch and of the optimizer step; bytes held for the whole
  /// step, per microbatch from F to B or I, and per microbatch from I to W.
  enum Amount : std::size_t {
    kForward,
    kInput,
    kWeight,
    kStep,
    kFixed,
    kSaved,
    kWeightSaved,
    kAmounts
  };

  /// Keeps references to layers and cluster. `Full`: every I begins with F again; what of it stays
  /// away from memory is for the caller to say. Before for_placement(), nothing may be asked about
  /// stages, and without `temporaries` nothing about these, which take 32 bytes a pair of
  /// positions.
  StageBounds(const Layers& layers, const Cluster& cluster, Recompute recompute = Recompute::None,
              bool temporaries = true);
  /// Bounds for the stages of a placement, to which it keeps a reference; nothing is summed again.
  /// All optimizer steps wait for a number of all gradients that takes `norm` at least.
  StageBounds for_placement(const Placement& placement, Nanoseconds norm) const;

  /// The last position.
  std::size_t last() const { return sums_->layer.size() - 1; }
  /// Layers before a position.
  std::size_t layer(std::size_t position) const { return sums_->layer[position]; }

  /// The amount of all layers before position q on the device of stage s, in [0, 2^53]. The
  /// difference of two positions, with what comes once(), is at most what the stage between them
  /// adds to its rank; of F, I and W it is just that. A storage or parameter that several stages
  /// share goes to the first.
  std::int64_t until(std::size_t q, std::size_t s, std::size_t amount) const {
    return sums_->of_kind[kind(s)][amount][q];
  }
  /// What comes on top, whatever the layers: overheads, the norm with the first optimizer step of a
  /// rank and, where a rank has one stage, the first
  /// layer's reduction, which is between the first stage's last backward and its optimizer step.
  std::int64_t once(std::size_t s, std::size_t amount) const;
  /// F, I and W of one microbatch (ns, without overheads) if stage s covers [from, to).
  std::int64_t load(std::size_t s, std::size_t from, std::size_t to) const;
  /// At least the temporary bytes of a stage that covers [from, to), beside what until() says of
  /// the microbatch that runs: in the pass that is the number of an Op: F, B, I, W.
  static constexpr std::size_t kPasses = 4;
  std::int64_t temporary(std::size_t pass, std::size_t from, std::size_t to) const {
    return sums_->temporary[pass][from * sums_->layer.size() + to];
  }
  struct Positions {
    std::size_t begin = 0, end = 0;  ///< the first and the one behind the last
  };
  /// At least the time of the message (`back`: of the gradients that come back) between stage s -
  /// 1, which begins somewhere in `begins`, and stage s, which begins at q and ends somewhere in
  /// `ends`. There may be none: nullopt; or, if there is one anyhow (`linked`), at least the time
  /// of any, 2^53 if there can be none. Of layers that run forward only nothing comes back, in no
  /// time. Linear in the values that cross q.
  std::optional<Nanoseconds> message(std::size_t s, Positions begins, std::size_t q, Positions ends,
                                     bool back, bool linked = false) const;

 private:
  struct Crossing {                // piece j = layers between positions j and j + 1
    std::size_t producer, reader;  ///< pieces; the first that reads behind the position
    const LayerValue* value;
  };
  /// What does not depend on the placement.
  struct Sums {
    Sums(const Layers& layers, const Cluster& cluster, Recompute recompute, bool temporaries);
    void add_kind(const Layers& layers, std::size_t kind, Recompute recompute);
    void find_temporaries(const Layers& layers);
    void find_crossings(const Layers& layers);
    std::size_t last() const { return layer.size() - 1; }

    bool forward_only = false;
    std::vector<std::size_t> layer{0}, segment;  // [position], [layer]
    std::int64_t first_reduction = 0;
    std::vector<std::array<std::vector<std::int64_t>, kAmounts>> of_kind;  // [...][position]
    std::array<std::vector<std::int64_t>, kPasses> temporary;  // [from * positions + to]
    std::vector<std::vector<Crossing>> crossing;               // [position]
  };
  DeviceId device(std::size_t s) const { return placement_->device(placement_->rank_of_stage[s]); }
  std::size_t kind(std::size_t s) const { return cluster_->kind_of_device[device(s).index()]; }
  /// The time of a message from the stage before s, or back to it.
  Nanoseconds time(std::size_t s, bool back, const TimedMessage& message) const;

  const Placement* placement_ = nullptr;
  Nanoseconds norm_{0};
  const Cluster* cluster_;
  std::shared_ptr<const Sums> sums_;
};

}  // namespace pfeife
