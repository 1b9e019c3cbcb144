// What a plan is asked for: every wish that a config or a program may have, named and nested as a
// config's keys (configs/REFERENCE.md describes each).
//   const Planned planned = plan(model, cluster, {.devices = 4, .plan = {.families = {"1f1b"}}});
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/machine/replicas.h"
#include "planner/ir/model/microbatch_scale.h"
#include "planner/ir/model/model_files.h"
#include "planner/ir/model/profile.h"
#include "planner/ir/model/recompute.h"
#include "planner/ir/request/select_by.h"
#include "planner/ir/request/taken_plan.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// `training`: how a step is done.
struct StepSettings {
  Precision precision = Precision::Fp32;
  Optimizer optimizer = Optimizer::Adam;
  double clip_norm = 0;  ///< largest norm of all gradients together; 0 = any
  std::optional<std::int64_t> microbatch_size = {};  ///< absent = the archive's own; 1 for others
  std::optional<std::int64_t> global_batch = {};     ///< samples a step, of all replicas
  Mode mode = Mode::Train;
  /// [microbatch] What each costs beside one of the model's own size; empty = all cost that.
  std::vector<MicrobatchScale> microbatch_costs = {};
  DocumentLengths lengths = {};  ///< the same, from the documents packed into each
  /// How many microbatches these two speak of; 0 = they say nothing.
  std::size_t listed_microbatches() const {
    return std::max(microbatch_costs.size(), lengths.size());
  }
  friend bool operator==(const StepSettings&, const StepSettings&) = default;
};

/// `plan`: where the plan comes from and among what it is chosen.
struct PlanSettings {
  enum class Cuts { Search, EachLayer, Given };
  /// Auto: between blocks of an archive, where that costs less than 1 % of the step.
  enum class CutsAt { Auto, Layers, Blocks };
  /// Where the output layer runs: on the last rank, on all ranks, or where the plan is faster.
  enum class Head { Last, Shared, Auto };

  std::optional<std::filesystem::path> file = {};  ///< the plan itself, plan.yaml
  std::optional<std::filesystem::path> schedule =
      {};                                    ///< its schedule, on given cuts; schedule.csv
  std::vector<std::string> families{"all"};  ///< names, or one of "all", "certified"
  std::vector<std::size_t> stages_per_rank{1, 2, 3};
  Head head = Head::Last;
  std::vector<std::size_t> slices = {};  ///< S to try, of families that cut sequences; none = none
  SliceLengths slice_lengths = SliceLengths::EqualTime;
  bool reference = false;      ///< search: reference, planner/search/reference/reference.h
  std::size_t iterations = 0;  ///< effort, about ms of branch and bound on one core; 0 = 500
  Cuts cuts = Cuts::Search;
  std::vector<std::int32_t> given_cuts = {};
  CutsAt cuts_at = CutsAt::Auto;
  Recompute recompute = Recompute::IfNeeded;
  bool recompute_except_last = false;  ///< of whatever is recomputed, not the last microbatch
  /// Plans may send to the host what stages save, where devices have a way there.
  bool offload = false;
  Receives receives = Receives::AtNeed;  ///< AtNeed: late, where a plan does not fit otherwise
  std::string order = "captured";        ///< of an archive's nodes; "search" = is to be found
  std::vector<DeviceId> devices = {};    ///< [rank]; empty = rank r on device r
  bool search_devices = false;           ///< which of them runs which rank is to be found
  /// Stages may live on other ranks than a family has them, in orders that are built for the costs.
  bool search_placement = false;
  /// Which microbatch stands where in the schedule is to be found, where they differ.
  bool search_microbatch_order = false;
  /// for: only what this framework runs (planner/ir/request/framework.h); "" = anything.
  std::string framework = {};
  std::optional<Bytes> reserve = {};      ///< of every device's memory; absent = as its kind says
  double as_fast = PlanRule{}.as_fast;    ///< as in PlanRule
  std::optional<double> max_bubble = {};  ///< as in PlanRule
  /// Share of what is left that stays free; absent = memory_margin() of allocator_settings.h.
  std::optional<double> memory_margin = {};
  /// PyTorch's; none: what is allocated is all that must fit.
  std::optional<AllocatorSettings> allocator = AllocatorSettings{};

  /// The search finds it: neither plan nor schedule is given.
  bool searched() const { return !file && !schedule; }
  /// Which plan is taken; reference mode takes the fastest.
  PlanRule rule() const {
    return {.as_fast = reference ? 0 : as_fast,
            .max_bubble = max_bubble,
            .compared = max_bubble ? 20 : PlanRule{}.compared};
  }
  friend bool operator==(const PlanSettings&, const PlanSettings&) = default;
};

/// One of `baselines`, with which the plan is compared: a schedule on cuts that another system, or
/// the user, would make.
struct BaselineSettings {
  /// EqualTime: the slowest stage as fast as possible; EqualParameters: the largest number of bytes
  /// of parameters as small as possible; EqualLayers: equal numbers of a model's blocks; Reference:
  /// those that reference mode finds for the schedule.
  enum class Cuts { EqualTime, EqualParameters, EqualLayers, Search, Reference, Given };

  std::string family;
  Recompute recompute = Recompute::None;
  bool recompute_except_last = false;
  std::string called = {};  ///< by the user; "" = after what it is
  Cuts cuts = Cuts::EqualTime;
  std::vector<std::int32_t> given_cuts = {};
  bool at_blocks = false;                           ///< cuts_at: blocks
  std::optional<std::size_t> stages_per_rank = {};  ///< absent = as few as the family takes
  std::optional<std::size_t> loop_batch = {};       ///< as in ScheduleSpec
  std::vector<std::size_t> prefetch = {};           ///< as in ScheduleSpec

  /// `called`, or what differs from the default: "1f1b", "1f1b_equal_layers_blocks". Its folder.
  std::string name() const;
  friend bool operator==(const BaselineSettings&, const BaselineSettings&) = default;
};
std::string to_string(BaselineSettings::Cuts cuts);

/// Random variation of durations (planner/ir/schedule/jitter.h), over so many runs; of the estimate
/// and of the simulation.
struct JitterSettings {
  double cv = 0;
  double drift = 0;
  std::size_t repetitions = 100;
  std::uint64_t seed = 1;
  friend bool operator==(const JitterSettings&, const JitterSettings&) = default;
};

/// `simulation`.
struct SimulationSettings {
  Queues queues = Queues::Pair;
  Links links = Links::Shared;
  Nanoseconds launch_overhead{5'000};  ///< per compute cell and optimizer step
  bool launch_overhead_given = false;  ///< else a measured profile may say it
  std::optional<JitterSettings> jitter = {};
  friend bool operator==(const SimulationSettings&, const SimulationSettings&) = default;
};

/// `measurement`: how plans are run on this machine.
struct MeasurementSettings {
  std::size_t steps = 12;   ///< training steps of a round, of which the first two only warm up
  std::size_t rounds = 15;  ///< in which the plans of a case take turns, at most; 1: no intervals
  /// Files of a run of the case's plan that has been, in the place of one here.
  std::vector<std::filesystem::path> traces = {};
  double interval = 0.02;  ///< enough are those that know every median so well: half width, a share
  friend bool operator==(const MeasurementSettings&, const MeasurementSettings&) = default;
};

/// `what_if.slow`: a rank that computes slower than the plan takes it to.
struct SlowRank {
  std::optional<std::size_t> rank = {};  ///< absent = each in turn, which is said in any case
  double factor = 1.1;                   ///< of all that it computes
  friend bool operator==(const SlowRank&, const SlowRank&) = default;
};
/// `what_if`: what becomes of the plan, which stays as it is.
struct WhatIf {
  std::optional<SlowRank> slow = {};
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// One of `calibration`: what makes published figures those of a system that was measured.
struct Calibration {
  std::string device_kind = {};             ///< that it holds for; "" = every one
  std::optional<Precision> precision = {};  ///< that it holds for; absent = every one
  std::optional<double> compute = {};       ///< factor of every time made from published figures
  std::optional<Nanoseconds> stage_overhead = {};  ///< of each forward and backward of a stage
  std::string origin = {};                         ///< where it comes from, in the user's words
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// What is asked of a mesh unless a config says otherwise: every size, ZeRO and recomputation are
/// open; sequence parallelism, bf16, reductions beside backwards; neighbours are tp, cp, dp, pp.
/// Configs and `pfeife-exp fits` both begin with it.
MeshQuestion usual_mesh();

/// `parallel` of an architecture: a mesh is to be chosen, and one pipeline of it to be planned.
struct MeshSettings {
  MeshQuestion question = usual_mesh();
  Network network;  ///< the hosts that the mesh lies on
  /// Keys of the pipeline's wishes that hold although they are at their defaults ("plan.families"):
  /// else such a wish is as usual for the mesh (pipeline_request()).
  std::set<std::string> given = {};
  friend bool operator==(const MeshSettings&, const MeshSettings&) = default;
};

struct Request {
  std::string name = {};         ///< for messages; of a config's case also its folder
  std::size_t devices = 0;       ///< D, the first so many of the cluster; 0 = all
  std::size_t microbatches = 0;  ///< N; 0 = 8, or as many as the global batch has
  ModelFiles model = {};
  std::filesystem::path cluster = {};
  StepSettings training = {};
  Replicas replicas = {};                 ///< `parallel`: of the pipeline, each on D devices
  std::optional<MeshSettings> mesh = {};  ///< in place of model, cluster, devices, microbatches
  PlanSettings plan = {};
  std::vector<BaselineSettings> baselines{{"gpipe"}, {"1f1b"}, {"interleaved_1f1b"}};
  std::vector<Calibration> calibration = {};  ///< the first that fits a device kind holds for it
  bool plan_published = false;                ///< plan_with: published, without the calibration
  bool simulate = true;  ///< among the engines; the simulator is also in the search
  bool measure = false;  ///< among the engines: plans are run on this machine
  SimulationSettings simulation = {};
  MeasurementSettings measurement = {};
  std::optional<SelectBy> select_by = {};  ///< absent = chosen_by()
  WhatIf what_if = {};
  /// What files are called in results and messages, by the path of their key ("plan.file"), so that
  /// folders do not matter; others by their own name.
  std::map<std::string, std::string> file_names = {};

  /// Only the global batch is given: microbatch size and number are to be found.
  bool microbatch_size_open() const { return training.global_batch && !training.microbatch_size; }
  friend bool operator==(const Request&, const Request&) = default;
};

/// By what the plan is chosen: by the simulation where there is one, unless the request says
/// otherwise.
SelectBy chosen_by(const Request& request);
/// The calibration that holds for a kind of devices; nullptr = none.
const Calibration* calibration_of(const Request& request, const std::string& device_kind);
/// Samples a step of each replica. The global batch must be given.
std::int64_t pipeline_batch(const Request& request);
/// "plan.file" or "plan.schedule", whichever is given.
std::string given_key(const PlanSettings& plan);
/// What that file is called.
std::string given_file_name(const Request& request);
/// What `file`, of the key "cluster", is called.
std::string file_name(const Request& request, const std::string& key,
                      const std::filesystem::path& file);

}  // namespace pfeife
