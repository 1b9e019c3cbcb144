// Schedule and placement: which rank does what in which order, and which stage lives where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/model/mode.h"
#include "planner/ir/schedule/action.h"

namespace pfeife {

/// Row r = what rank r issues, in that order. Compute-only when families make it; lowered once
/// transfers, reductions and optimizer steps are in.
struct Schedule {
  std::vector<std::vector<Cell>> rows;

  std::size_t ranks() const { return rows.size(); }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Stage -> rank and rank -> device. Several stages may share a rank, several ranks a device.
struct Placement {
  std::vector<RankId> rank_of_stage;
  std::vector<DeviceId> device_of_rank;

  std::size_t stages() const { return rank_of_stage.size(); }
  std::size_t ranks() const { return device_of_rank.size(); }
  RankId rank(StageId s) const { return rank_of_stage[s.index()]; }
  DeviceId device(RankId r) const { return device_of_rank[r.index()]; }
  DeviceId device(StageId s) const { return device(rank(s)); }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// rank(s) = s mod ranks, device(r) = r.
Placement round_robin(std::size_t stages, std::size_t ranks);
/// Two stages a rank, folded: rank r has stages r and 2 ranks - 1 - r; device(r) = r.
Placement v_shape(std::size_t ranks);
/// The placement that the rows themselves show (the rank in whose row a stage's actions are),
/// device(r) = r. Empty if a stage is on two ranks or a stage number is missing.
std::optional<Placement> placement_of(const Schedule& schedule);

/// 1 + the largest stage number, and 1 + the largest microbatch number, each slice counted; 0 if
/// there are none.
std::size_t stage_count(const Schedule& schedule);
std::size_t microbatch_count(const Schedule& schedule);
std::size_t microbatch_count(const std::vector<Cell>& row);
/// Slices of a microbatch: S of its first action that names one, else 1.
std::size_t slice_count(const Schedule& schedule);
std::size_t slice_count(const std::vector<Cell>& row);
/// The schedule whose single cells were read: S = 1 + the largest slice number in all actions that
/// name a slice.
Schedule in_slices(Schedule read);
/// How often all ranks wait for one another between the last F and the first B of a microbatch
/// whose output layer they share: 0 = no row has S; 2 = every T of the last stage stands before its
/// B, which waits for REDUCE_T; 1 = one of them stands behind, so B waits for REDUCE_S.
std::size_t head_barriers(const Schedule& schedule);
/// [stage] The microbatch that each of so many stages runs forward last; -1 = the rows have none.
std::vector<MicrobatchId> last_forwards(const Schedule& schedule, std::size_t stages);
std::vector<MicrobatchId> last_forwards(const std::vector<Cell>& row, std::size_t stages);

/// What the stages of a partition have to do with each other; all that lowering and validation need
/// to know.
struct StageGraph {
  /// Values flow from stage `from` to stage `to` > from; a gradient flows back if `gradient`.
  struct Edge {
    StageId from, to;
    bool gradient = true;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  std::size_t stages = 0;
  std::vector<Edge> edges;  ///< sorted by (from, to), unique
  std::vector<std::vector<StageId>>
      tied;  ///< groups of stages that share a parameter; each sorted, size >= 2
  /// Each stage has a reduction of its own: of its replicas' gradients.
  bool replicas = false;
  /// B and I of the microbatch that a stage runs forward last take a time of their own.
  bool last_apart = false;
  bool one_copy_engine = false;  ///< OFFLOAD and RELOAD of a rank are in one queue
  /// All ranks, of one stage each, share the output layer (vocabulary parallelism): B of the last
  /// stage waits for REDUCE_S (1) or REDUCE_T (2). 0: the last stage has it.
  std::size_t head_barriers = 0;
  /// [microbatch] Those of one kind take equal times; empty = all do.
  std::vector<std::uint32_t> kind_of = {};
  Mode mode = Mode::Train;  ///< Forward: rows have F alone, and no edge has a gradient

  friend bool operator==(const StageGraph&, const StageGraph&) = default;
};
/// Stage s feeds stage s + 1, nothing is tied: the pipeline of the textbooks.
StageGraph chain(std::size_t stages, Mode mode = Mode::Train);

/// How transfers are ordered on their way: in both engines and in validation.
enum class Queues {
  None,  ///< a transfer starts when its value is ready
  Edge,  ///< first in, first out per ordered pair of ranks
  Pair,  ///< ... per unordered pair of ranks
  Rank,  ///< ... per rank, one queue for everything it sends and receives
};
enum class Links {
  Delay,   ///< latency + bytes / bandwidth, any number at once
  Shared,  ///< transfers at the same time share the links they cross (simulator only)
};
struct Semantics {
  Queues queues = Queues::None;
  Links links = Links::Delay;
  bool blocking = false;  ///< SEND, RECV and REDUCE_GRAD hold their rank until they are done

  friend bool operator==(const Semantics&, const Semantics&) = default;
};
std::string to_string(Queues queues);
std::string to_string(Links links);

/// When a rank takes its messages, which then hold its memory until they are read.
enum class Receives {
  AsReady,  ///< as soon as they are ready
  AtNeed,   ///< right before the action that reads them, as far as no row can then hang
};

/// How a microbatch's sequence is cut into slices.
enum class SliceLengths {
  Equal,      ///< equally long ones: the last takes longest
  EqualTime,  ///< ones that take equally long: the first is longest
};

/// A point of a schedule family: what names one schedule among all that can be generated.
struct ScheduleSpec {
  std::string family;                     ///< name of planner/schedules/families.h, or "file"
  std::size_t ranks = 1;                  ///< D
  std::size_t microbatches = 1;           ///< N
  std::size_t stages_per_rank = 1;        ///< V, stages a rank
  std::optional<std::size_t> loop_batch;  ///< B_l (looped)
  std::vector<std::size_t>
      prefetch;            ///< extra early forwards: empty = 0, one = scalar, else one a rank
  std::size_t slices = 1;  ///< S, pieces of each microbatch's sequence (Family::takes_slices)
  SliceLengths slice_lengths = SliceLengths::Equal;
  /// Where each stage lives (Family::takes_placement); empty = where the family has them. V is then
  /// the mean, rounded down.
  std::vector<RankId> rank_of_stage = {};

  std::size_t stages() const {
    return rank_of_stage.empty() ? ranks * stages_per_rank : rank_of_stage.size();
  }
  friend auto operator<=>(const ScheduleSpec&, const ScheduleSpec&) = default;
};
/// "loop_batch=8, prefetch=3", "ranks=0 1 2 1": what is chosen besides the stages a rank.
std::string knobs(const ScheduleSpec& spec);

/// What a schedule is called: "looped, V=2, loop_batch=8, prefetch=3"; a single stage a rank is not
/// said. `chosen`: its knobs, and what else distinguishes it.
std::string schedule_name(const std::string& family, std::size_t stages_per_rank,
                          const std::string& chosen);
std::string schedule_name(const ScheduleSpec& spec);

}  // namespace pfeife
