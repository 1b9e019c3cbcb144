// experiment.yaml: what a user asks for, as plain values, one CaseConfig a case.
//
// Read strictly: unknown keys, wrong types, missing units and files that are not there are refused
// with their place. What can only be known with the model or the cluster at hand (device counts,
// cuts, family rules) is checked by those who load them; the places for their messages are kept
// here. Every key is described in configs/REFERENCE.md.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/yaml_value.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/machine/replicas.h"
#include "planner/ir/model/model_format.h"
#include "planner/ir/model/operator_cost.h"
#include "planner/ir/model/profile.h"
#include "planner/ir/model/recompute.h"
#include "planner/ir/result/case_record.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// A file that the config names.
struct InputFile {
  std::string
      written;  ///< as it stands in the config; goes into results, so that folders do not matter
  std::filesystem::path path;  ///< resolved against the config's folder
  SourceLocation where;
  /// The config says `measure`: the file is to be made on this machine; `path` is empty until then.
  bool measured = false;
  /// Values that replace those in the file, by the paths of their keys (clusters only).
  std::vector<std::pair<std::string, YamlValue>> replaced = {};
};

struct ModelInput {
  InputFile file;
  ModelFormat format = ModelFormat::Pt2;
  Nanoseconds time_unit{0};        ///< what the times of a Piper profile count
  std::optional<InputFile> skips;  ///< of a layer table
};

/// Where the plan comes from and among what it is chosen.
struct PlanSettings {
  enum class Source { Search, PlanFile, ScheduleFile };
  enum class Cuts { Search, EachLayer, Given };

  Source source = Source::Search;
  std::optional<InputFile> file;  ///< plan.yaml or schedule.csv
  Cuts cuts = Cuts::Search;
  std::vector<std::int32_t> given_cuts;
  std::vector<std::string> families{"all"};  ///< names, or one of "all", "certified"
  std::vector<std::size_t> stages_per_rank{1, 2, 3};
  bool reference = false;  ///< search: reference, planner/search/reference/reference.h
  Recompute recompute = Recompute::IfNeeded;
  bool recompute_except_last = false;    ///< of whatever is recomputed, not the last microbatch
  Receives receives = Receives::AtNeed;  ///< AtNeed: late, where a plan does not fit otherwise
  std::size_t iterations = 0;            ///< 0 = default budget
  std::optional<Bytes> reserve;          ///< replaces that of the device kinds
  std::vector<DeviceId> devices;         ///< [rank]; empty = rank r on device r
  bool search_devices = false;           ///< which of them runs which rank is to be found
  std::string order = "captured";        ///< of an archive's nodes; "search" = is to be found
  bool at_blocks = false;                ///< cuts_at: blocks, only between the blocks of an archive
  bool for_torch = false;  ///< for: torch, only what torch.distributed.pipelining runs
  SourceLocation where, families_where, cuts_where, devices_where, reserve_where;
};

/// What the plan is compared with: a schedule on cuts that another system, or the user, would make.
struct BaselineSettings {
  /// EqualTime: the slowest stage as fast as possible; EqualParameters: the largest number of bytes
  /// of parameters as small as possible; EqualLayers: equal numbers of a model's blocks; Reference:
  /// those that reference mode finds for the schedule.
  enum class Cuts { EqualTime, EqualParameters, EqualLayers, Search, Reference, Given };

  std::string family;
  Recompute recompute = Recompute::None;
  bool recompute_except_last = false;
  std::string called;  ///< by the user; "" = after what it is
  Cuts cuts = Cuts::EqualTime;
  std::vector<std::int32_t> given_cuts;
  bool at_blocks = false;                      ///< cuts_at: blocks
  std::optional<std::size_t> stages_per_rank;  ///< absent = as few as the family takes
  std::optional<std::size_t> loop_batch;       ///< as in ScheduleSpec
  std::vector<std::size_t> prefetch;           ///< as in ScheduleSpec

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
};

struct SimulationSettings {
  Queues queues = Queues::Pair;
  Links links = Links::Shared;
  Nanoseconds launch_overhead{5'000};  ///< per compute cell and optimizer step
  bool launch_overhead_given = false;  ///< else a measured profile may say it
  std::optional<JitterSettings> jitter;
};

/// How plans are run on this machine.
struct MeasurementSettings {
  std::size_t steps = 12;   ///< training steps of a round, of which the first two only warm up
  std::size_t rounds = 15;  ///< in which the plans of a case take turns, at most; 1: no intervals
  /// Files of a run of the case's plan that has been, in the place of one here.
  std::vector<InputFile> traces;
  double interval = 0.02;  ///< enough are those that know every median so well: half width, a share
};

/// What makes published figures those of a system that was measured.
struct Calibration {
  std::string device_kind;             ///< that it holds for; "" = every one
  std::optional<Precision> precision;  ///< likewise
  std::optional<double> compute;       ///< every time made from published figures is multiplied
  std::optional<Nanoseconds> stage_overhead;  ///< of each forward and backward of a stage
  std::string origin;                         ///< where it comes from, in the user's words
};

enum class SelectBy { Estimate, Simulate, P95 };
std::string to_string(SelectBy select_by);

/// One case: everything that decides its result, the bytes of the files apart.
struct CaseConfig {
  std::string name;             ///< "devices=4,microbatches=8"; also its folder, see case_name
  std::vector<SweptKey> swept;  ///< besides model, cluster, devices and microbatches
  ModelInput model;
  std::optional<InputFile> profile;
  std::vector<OperatorCost> operators;         ///< costs of the user's, before those of the table
  InputFile cluster;                           ///< calibrated, by replaced values
  std::vector<Calibration> calibrations;       ///< the first that fits a device kind holds for it
  std::optional<InputFile> published_cluster;  ///< not calibrated; absent = `cluster` is not
  bool plan_published = false;  ///< plan_with: published, the plan is made for that one
  Precision precision = Precision::Fp32;
  Optimizer optimizer = Optimizer::Adam;
  double clip_norm = 0;                         ///< as Plan::clip_norm
  std::optional<std::int64_t> microbatch_size;  ///< absent = the archive's own; 1 for layer tables
  std::optional<std::int64_t> global_batch;     ///< samples a step = N x microbatch_size
  std::size_t devices = 1;                      ///< D, the first so many of the cluster
  Replicas replicas;                            ///< of the pipeline, each on D devices
  std::size_t microbatches = 8;                 ///< N; 0 if the microbatch size is open
  PlanSettings plan;
  std::vector<BaselineSettings> baselines{{"gpipe"}, {"1f1b"}, {"interleaved_1f1b"}};
  SimulationSettings simulation;
  bool simulate = true;
  bool measure = false;
  MeasurementSettings measurement;
  SelectBy select_by = SelectBy::Estimate;
  SourceLocation where, devices_where, microbatches_where, microbatch_size_where, precision_where,
      measure_where, global_batch_where, replicas_where;

  /// Only the global batch is given: microbatch size and number are to be found.
  bool microbatch_size_open() const { return global_batch && !microbatch_size; }
};

struct Experiment {
  std::string name;  ///< the file's stem, as folder_name() makes it
  InputFile file;
  std::vector<CaseConfig> cases;
  std::optional<Nanoseconds> step_below;  ///< which case needs the fewest devices for that?
};

/// What the words of a config may be, and what it needs to know of other files.
struct ExperimentRules {
  std::vector<std::string> families;            ///< names of schedule families
  std::vector<std::string> orders{"captured"};  ///< names of linear orders
  /// Devices in a cluster file, or of this machine if it is to be measured: the default of
  /// cases.devices, and its limit.
  std::function<std::size_t(const InputFile& cluster)> devices;
  /// Ranks and microbatches of plan.file or plan.schedule.
  std::function<std::pair<std::size_t, std::size_t>(const PlanSettings& plan)>
      ranks_and_microbatches;
  /// Linear order of plan.file; empty = captured.
  std::function<std::string(const PlanSettings& plan)> order_of_plan;
  /// What plan.file was made for; empty = the defaults.
  std::function<Training(const PlanSettings& plan)> training_of_plan;
  /// Names of the device kinds in a cluster file; empty = none can be calibrated.
  std::function<std::vector<std::string>(const InputFile& cluster)> device_kinds;
};

/// Reads an experiment, applies `settings` ("key.path=value" each, as given to --set), and expands
/// the product of its cases, the last key of `cases` varying fastest. Errors: ConfigError.
Experiment read_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& settings, const ExperimentRules& rules);

/// The case as YAML with every default written out: equal text = equal case. Part of its digest and
/// of the report.
std::string resolved_text(const CaseConfig& config);

/// "compute x 1.033, 3 ms a stage execution (table 1)": what is calibrated, for people; "" =
/// nothing is.
std::string calibration_text(const CaseConfig& config);

/// `text` made fit to be a folder's name: other characters than letters, digits and "._+=,-" become
/// "_", as does a dot at the beginning.
std::string folder_name(std::string text);

/// "key=value,key=value" made fit to be a folder: other characters than letters, digits and
/// "._+=,-" become "_", a path stands for its stem, long names are cut and get a digest.
std::string case_name(const std::vector<std::pair<std::string, std::string>>& keys_and_values);

}  // namespace pfeife
