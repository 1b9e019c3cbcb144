// Pfeife in a program of your own: a model and a cluster go in; a plan comes out that can be
// simulated, drawn, saved and, from its folder, run (pfeife-run) and judged (pfeife-schedule
// certify).
//
//   #include <pfeife/pfeife.h>
//   using namespace pfeife;
//
//   const Cluster cluster = load_cluster("a100_sxm4_40gb_x8.yaml");
//   const Planned planned = plan(load_model("vit_g14.pt2"), cluster,
//                                {.devices = 4, .microbatches = 8,
//                                 .training = {.precision = Precision::Tf32}});
//   write_timeline(simulate(planned.best(), cluster), "timeline.svg");
//   save(planned, "plan");
//   std::puts(certify("plan").text.c_str());
//
// Errors of the user's files and wishes are ConfigError, with file and line where there is one;
// what fails on the way is RuntimeFault (planner/ir/basics/error.h). Equal input gives equal
// results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/io/files/memory_file.h"
#include "planner/io/plan/plan_export.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/results/results.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/model/architecture.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/model_files.h"
#include "planner/ir/request/check.h"
#include "planner/ir/request/request.h"
#include "planner/ir/result/answer.h"
#include "planner/ir/result/case_record.h"
#include "planner/ir/result/contestant.h"
#include "planner/ir/result/not_executed.h"
#include "planner/ir/result/priced.h"
#include "planner/ir/result/step_norm.h"
#include "planner/ir/schedule/graph_split.h"
#include "planner/ir/trace/trace.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"
#include "plots/screen/table.h"
#include "plots/timeline/timeline.h"

namespace pfeife {

/// What is to be cut: a model's files, from which layers with costs follow for each cluster and
/// precision, or such layers themselves.
struct Model {
  ModelFiles files;  ///< by absolute paths; none = `layers`
  /// With times for every device kind of the clusters that they are planned for.
  std::shared_ptr<const Layers> layers = {};
};

/// A model's file: an archive of torch.export (.pt2) or a layer table (.csv). Read by plan().
/// Errors: ConfigError if it is not there, or if its format does not follow from its name.
Model load_model(const std::filesystem::path& file);
/// A model of several files, or of a published profile. Errors: ConfigError if one is not there.
Model load_model(ModelFiles files);
/// Layers at hand.
Model model_of(Layers layers);

/// A cluster's file (configs/clusters/README.md). Cluster is a plain value; uniform_cluster() makes
/// a simple one.
Cluster load_cluster(const std::filesystem::path& file);
/// The text of such a file with values replaced, as a config's `set` has them: by the paths of
/// their keys, {"links.nic.bandwidth", "50 GB/s"}, in YAML. Errors: ConfigError, also of what the
/// cluster then is.
std::string changed_cluster(const std::filesystem::path& file,
                            const std::map<std::string, std::string>& values);
/// Such a file as one of many equal hosts, and a transformer's sizes (configs/architectures): what
/// a mesh is asked of. Errors: ConfigError.
Network load_hosts(const std::filesystem::path& file);
Architecture load_architecture(const std::filesystem::path& file);

/// A case of a config.
struct AskedCase {
  Request request;     ///< its `name` is the case's
  Cluster cluster;     ///< of the config's file, with the values that the config replaces in it
  std::string text;    ///< the case as YAML, defaults written out
  std::string digest;  ///< of all that decides the case: its text, its files, this library
};
/// The cases of a config (configs/REFERENCE.md) as text: what pfeife-exp reads from a file. Paths
/// in it are seen from the folder of `file`, which need not be there; messages have its name.
/// `file_names`: as Request has them, of files whose paths say nothing. Errors: ConfigError, also
/// for configs that measure, and for those of a mesh.
std::vector<AskedCase> cases_of(const std::string& config, const std::filesystem::path& file,
                                const std::map<std::string, std::string>& file_names = {});
/// The same of a config with one case.
AskedCase request_of(const std::string& config, const std::filesystem::path& file,
                     const std::map<std::string, std::string>& file_names = {});
/// Every key of a config by its path: "select_by", "training", "training.precision".
std::vector<std::string> request_keys();

/// How plan() works: of no account for what comes out.
struct RunOptions {
  std::size_t threads = 1;
  std::function<void(double fraction)> progress = {};  ///< told which share of the search is done
  std::stop_token stop = {};                           ///< when asked, plan() soon throws Stopped
};

/// plan() was asked to stop.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

struct EvaluatedCase;  // of no account for others

/// What planning came to, with the plans themselves.
struct Planned : Answer {
  std::optional<MeshRun> mesh = {};          ///< the chosen one, if one was asked for
  std::vector<Contestant> contestants = {};  ///< the planned one, then the baselines as listed

  /// Where the costs came from.
  std::shared_ptr<const Layers> layers = {};
  std::optional<PlanFiles> files = {};  ///< absolute paths; none if model or cluster is no file
  std::shared_ptr<const EvaluatedCase> evaluated = {};  ///< what tables and reports show

  bool found() const { return contestants.front().possible(); }
  /// The planned one. Errors: RuntimeFault with the reason if nothing fits.
  const PricedPlan& best() const { return contestants.front().priced(); }
};

/// Chooses cuts, schedule and order together, as `request` asks: whatever a config of pfeife-exp
/// can say (planner/ir/request/request.h; configs/REFERENCE.md describes every key), with the same
/// defaults. Model and cluster are those at hand. Errors: ConfigError for what cannot be planned,
/// as RefusedWish with the key if it is a wish; Stopped.
Planned plan(const Model& model, const Cluster& cluster, const Request& request = {},
             const RunOptions& options = {});
/// The same of the model and the cluster that the request names; of a mesh, if it asks for one: the
/// mesh is chosen, and one pipeline of it planned. Errors: the same.
Planned plan(const Request& request, const RunOptions& options = {});

/// A plan from the folder in which it was saved, its costs computed anew from the files that it
/// names, estimated and simulated. Errors: ConfigError, also if it names no files.
Planned load_plan(const std::filesystem::path& named, const RunOptions& options = {});

/// The bound that covers one of the contestants, with its class: no plan of the class has a smaller
/// estimate. Nothing if none is known.
std::optional<CoveringBound> bound_of(const Planned& planned, std::size_t contestant = 0);

/// What that bound covers, in full; "" = there is none.
std::string covered_text(const Planned& planned, std::size_t contestant);

/// A plan's stages as they execute: what pfeife-run makes of the plan, without LibTorch.
struct PlannedStages {
  Graph graph;       ///< of one microbatch, its nodes in the plan's order
  GraphSplit split;  ///< by cuts after Plan::cut_nodes; blocks that are recomputed: block_nodes
  /// [slice] Where it ends, as a share of the sequence; empty: microbatches are whole.
  std::vector<double> slice_ends = {};
};
/// What runs in which stage of one of the contestants. `planned` must have been found by plan() or
/// load_plan(), of an archive. Errors: ConfigError of a model that has layers alone; RuntimeFault
/// if there is no such plan.
PlannedStages stages_of(const Planned& planned, std::size_t contestant = 0);

/// The figures of every plan beside one another, with why and what would help: what a table shows.
/// `planned` must have been found by plan() or load_plan().
CaseRecord record_of(const Planned& planned);
/// The table that pfeife-exp prints of a case.
std::string table(const Planned& planned, const ScreenOptions& options = {});
/// Its page, an HTML document that needs nothing else. Some megabytes for thousands of actions.
std::string report(const Planned& planned);

/// Prices the choices of a search of your own: ask for a batch, be told times and memory.
///
///   Pricer pricer(model, cluster, {.devices = 4, .microbatches = 8});
///   const Priced first = pricer.price({{choice}}).front();  // first.estimate, first.peak_memory
class Pricer {
 public:
  /// Prices plans of the model's layers as the request uses them, on the cluster. Errors: as
  /// plan().
  Pricer(const Model& model, const Cluster& cluster, const Request& request = {});

  /// What is cut: Layer::no_cut_after says where not.
  const Layers& layers() const { return *layers_; }
  /// The points of the families that the request allows.
  const std::vector<ScheduleSpec>& schedules() const { return schedules_; }
  /// Which device runs which rank.
  const std::vector<DeviceId>& device_of_rank() const { return device_of_rank_; }
  const std::vector<Bytes>& memory_limit() const { return memory_limit_; }  ///< [rank]

  /// [choice] Estimate, peaks (fits() compares them with the limits), costs and rows. An empty
  /// placement is the schedule's on these devices. Errors: ConfigError of the first choice that
  /// cannot be: a schedule that no family can do, cuts that are not legal.
  std::vector<Priced> price(std::vector<Choice> choices, std::size_t threads = 1) const;

 private:
  std::shared_ptr<const Layers> layers_;
  Cluster cluster_;
  Receives receives_ = Receives::AtNeed;
  StepNorm norm_ = StepNorm::None;
  std::vector<ScheduleSpec> schedules_;
  std::vector<DeviceId> device_of_rank_;
  std::vector<Bytes> memory_limit_;
  std::optional<AllocatorSettings> allocator_;
};

/// The step on links that are shared, by the simulator (SimGrid). Errors: RuntimeFault, also where
/// there is no simulator.
Trace simulate(const PricedPlan& priced, const Cluster& cluster);
/// The step of one of the contestants as the request has it simulated, without jitter. `planned`
/// must have been found by plan() or load_plan(). Errors: the same, also if there is no such plan.
Trace simulate(const Planned& planned, std::size_t contestant = 0);

/// The plan's step as a picture, true to scale: what timeline_svg() draws. SVG.
void write_timeline(const Trace& trace, const std::filesystem::path& file);

/// Writes one of the contestants, the planned one unless another is named, into a folder:
/// plan.yaml, schedule.csv, stages.csv, certificate.txt (of the planned one), and what
/// torch.distributed.pipelining needs. The folder is then what pfeife-run, pfeife-schedule and a
/// config's `plan: {file: ...}` take. Errors: RuntimeFault with the reason if there is no such
/// plan.
void save(const Planned& planned, const std::filesystem::path& folder, std::size_t contestant = 0);

/// One of the contestants in the words of a framework (export_names()): texts of files, and what
/// could not be carried over. Errors: ConfigError for an unknown framework, and for models that it
/// cannot be told of.
Exported export_for(const std::string& framework, const Planned& planned,
                    std::size_t contestant = 0);

/// What the judge, who shares no code with the search, says of a saved plan.
struct Judgement {
  std::string text;
  bool proven = false;  ///< all that the plan says, of costs computed anew from its files
};
/// Errors: ConfigError, also for what is refused.
Judgement certify(const std::filesystem::path& folder, std::size_t threads = 1);

}  // namespace pfeife
