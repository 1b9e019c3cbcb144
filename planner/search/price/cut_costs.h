// Prices cuts for a Program: the durations of every stage and the latencies between neighbours, in
// a fraction of a microsecond.
//
// A skip transfer never binds if it takes no longer than the chain of stages beside it (it starts
// at the same event and ends at the same one), so the Program is exact without skips unless price()
// says otherwise.
#pragma once

#include <map>
#include <optional>

#include "planner/cost/stages/timed_message.h"
#include "planner/search/price/cut_model.h"

namespace pfeife {

class CutCosts {
 public:
  CutCosts(const CutModel& model, const Placement& placement);

  struct Priced {
    bool exact = true;                    ///< false: a skip may bind, so that skips() are needed
    const ReductionTail* tail = nullptr;  ///< if it has reductions; until the next price()
  };
  /// Writes durations[index * stride] for all base indices of `program` (not what
  /// Program::complete adds). The stages of `recompute`, if it is given, are recomputed. B and I
  /// of a stage take `again` ([stage], ns) more, if that is given. Neither is of last_input().
  Priced price(const Cuts& cuts, const Program& program, double* durations, std::size_t stride,
               const std::vector<bool>* recompute = nullptr,
               const std::vector<double>* again = nullptr);
  /// Messages between stages of different ranks that are not neighbours.
  std::vector<SkipTransfer> skips(const Cuts& cuts) const;
  /// The same as price() in 32 bits; only if is_narrow().
  Priced price(const Cuts& cuts, const Program& program, Program::Narrow* durations,
               std::size_t stride);
  /// One microbatch and the optimizer on all stages together take less than 2^31 ns.
  bool is_narrow() const { return is_narrow_; }
  /// Takes durations as price() wrote them: transfers between neighbours that do not exist become
  /// ones that take no time. True if the program then surely takes no less than the cuts do: all
  /// that is left out is no longer than the chain, and further dependencies shorten nothing.
  template <class Number>
  bool link_all(const Cuts& cuts, const Program& program, Number* durations, std::size_t stride);

  /// Lower bounds, for all cuts with p[i] = q, p[i-1] <= latest_begin, p[i+1] >= earliest_end, of
  /// the latencies of boundary i; kNever if the transfer may not exist.
  struct Latency {
    double forward = Program::kNever, backward = Program::kNever;
  };
  Latency least_latency(std::size_t boundary, std::int32_t q, std::int32_t latest_begin,
                        std::int32_t earliest_end) const;
  /// Values and gradients are sent for all such stages, or a rank has both of them.
  bool always_linked(std::size_t boundary, std::int32_t q, std::int32_t latest_begin,
                     std::int32_t earliest_end) const;
  /// Whether, for all such stages, the one behind q waits for a value of the one before it, and
  /// that one for a gradient: whichever ranks have them.
  struct Waits {
    bool forward = false, backward = false;
  };
  Waits common_waits(std::int32_t q, std::int32_t latest_begin, std::int32_t earliest_end) const;
  /// At least the latencies of a boundary at q, however long its stages are (within positions
  /// first..last), if they are linked; kNever where they cannot be.
  Latency linked_latency(std::size_t boundary, std::int32_t q, std::int32_t first,
                         std::int32_t last) const;

  /// Bytes that the costs of so many stages hold, nearly, if boundaries have so many positions.
  static Bytes memory(std::size_t stages, std::size_t positions) {
    return Bytes{
        static_cast<std::int64_t>(stages * free_positions(stages, positions) * sizeof(Known))};
  }

  std::size_t kind(std::size_t stage) const { return kind_[stage]; }
  const std::vector<std::size_t>& kinds() const { return kind_; }
  /// Per F and per B or I of a stage, and once a step with its optimizer (ns). Where a rank has one
  /// stage, that is behind the first layer's reduction, which no backward hides. The first
  /// optimizer step of each rank is behind the norm, which takes least_norm_time().
  double action_overhead(std::size_t stage) const { return action_overhead_[stage]; }
  double step_overhead(std::size_t stage) const {
    return step_overhead_[stage] + (stage == 0 ? first_reduction_ : 0) +
           (is_first_[stage] ? least_norm_ : 0);
  }
  bool crosses_ranks(std::size_t boundary) const {
    return placement_.rank_of_stage[boundary - 1] != placement_.rank_of_stage[boundary];
  }

 private:
  struct BothWays {
    TimedMessage forward, backward;
    void add(const LayerValue& value);
  };
  struct Known {  // the last answer for a boundary at a position
    std::uint64_t mask = 0;
    std::int32_t before = -1, after = -1;
    Latency latency;
    std::array<Program::Narrow, 2> narrow{};  // the same: forward, backward
  };
  Latency latency(std::size_t from, std::size_t to, const BothWays& message) const;
  const Known& neighbour(std::size_t boundary, const Cuts& cuts);
  void renew(Known& known, std::size_t boundary, std::int32_t q, std::int32_t before,
             std::int32_t after);
  void price_works(const Cuts& cuts, const Program& program, double* durations, std::size_t stride,
                   const std::vector<bool>* recompute, const std::vector<double>* again) const;
  void price_works(const Cuts& cuts, const Program& program, Program::Narrow* durations,
                   std::size_t stride) const;
  /// What is left when the works of stages are priced.
  template <class Number>
  Priced price_rest(const Cuts& cuts, const Program& program, Number* durations,
                    std::size_t stride);
  /// Behind the gradients of all ranks: the norm, and the optimizer steps of the slowest rank.
  template <class Number>
  double price_norm(const Cuts& cuts, const Program& program, Number* durations,
                    std::size_t stride) const;
  double clipping(const Cuts& cuts) const;
  double longest_clipping() const;
  template <class Number>
  void price_replicas(const Cuts& cuts, const Program& program, Number* durations,
                      std::size_t stride) const;
  /// `reductions` (may be null) with those of replicas, and what is behind all.
  const ReductionTail& own_tail(const Cuts& cuts, const ReductionTail* reductions,
                                std::optional<double> behind_all);
  bool has_skips(const Cuts& cuts) const;
  /// visit(from, to, message) for what passes over stages, until it returns true; whether it has.
  template <class Visit>
  bool any_skip(const Cuts& cuts, const Visit& visit) const;
  /// Where a boundary may be: stages before it and behind it have a segment each.
  static std::size_t free_positions(std::size_t stages, std::size_t positions) {
    return positions > stages ? positions - stages : 0;
  }
  /// No skip binds for sure: whatever passes over a stage takes less than the stage itself.
  template <class Number>
  bool skips_are_short(const Cuts& cuts, const Program& program, const Number* durations,
                       std::size_t stride) const;
  template <class Number>
  bool skip_may_bind(const Cuts& cuts, const Program& program, const Number* durations,
                     std::size_t stride) const;
  template <class Number>
  const ReductionTail* reductions(const Cuts& cuts, const Program& program, const Number* durations,
                                  std::size_t stride);

  const CutModel& model_;
  Placement placement_;
  bool one_a_rank_ = false;                                           // stages
  double first_reduction_ = 0;                                        // if so
  std::vector<std::size_t> kind_;                                     // [stage]
  std::vector<double> action_overhead_, step_overhead_;               // [stage]
  std::vector<bool> is_first_;                                        // [stage] of its rank
  double exchange_ = 0, least_norm_ = 0;                              // of the norm
  std::vector<std::array<Program::Narrow, kWorks>> narrow_overhead_;  // [stage][work]
  bool is_narrow_ = false;
  std::vector<Known> known_;             // [boundary i * free_positions + q - i]
  std::vector<double> longest_message_;  // [q] at least the time of any message across q
  std::map<std::vector<std::int32_t>, ReductionTail> tails_;  // by the stages of shared parameters
  ReductionTail own_tail_;                                    // of the last candidate
};

}  // namespace pfeife
