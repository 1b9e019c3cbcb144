// experiment.yaml: what a user asks for, one CaseConfig a case: a request (planner/ir/request) with
// the places of its keys in the file.
//
// Read strictly: unknown keys, wrong types, missing units and files that are not there are refused
// with their place, and so are wishes that exclude one another (planner/ir/request/check.h). What
// can only be known with the model or the cluster at hand (cuts, family rules) is refused by those
// who load them, and placed here. Every key is described in configs/REFERENCE.md.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/experiment/figure_settings.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/profile.h"
#include "planner/ir/request/check.h"
#include "planner/ir/request/request.h"
#include "planner/ir/result/case_record.h"

namespace pfeife {

/// One case: a request, and where it comes from.
struct CaseConfig : Request {        // `name`: "devices=4,microbatches=8"; see case_name
  std::vector<SweptKey> named = {};  ///< what its name is made of
  std::vector<SweptKey> swept = {};  ///< besides model, cluster, devices and microbatches
  /// Values that replace those in the cluster's file, by the paths of their keys.
  Replaced cluster_set = {};
  /// The config says `measure`: the file is to be made on this machine; its path is empty until
  /// then.
  bool cluster_measured = false, profile_measured = false;
  std::map<std::string, SourceLocation> places = {};  ///< of values, by the paths of their keys
  /// What other cases of the sweep have to do with this one.
  struct Handed {
    std::vector<std::string> from = {};  ///< cases whose plans it takes if they are faster
    std::string digest = {};             ///< of what those are computed from; "" = there are none
    std::size_t group = 0;               ///< of cases that hand plans to one another
  } handed = {};

  /// Where the key stands, or what it stands in: "plan" of "plan.cuts".
  SourceLocation place(std::string key) const;
};

/// Does the work on a case. A wish that is refused gets its place in the config.
template <class Work>
decltype(auto) with_places(const CaseConfig& config, const Work& work) {
  try {
    return work();
  } catch (const RefusedWish& refused) {
    throw ConfigError(config.place(refused.key()), refused.what());
  }
}

struct Experiment {
  std::string name;  ///< the file's stem, as folder_name() makes it
  std::vector<CaseConfig> cases;
  std::optional<Nanoseconds> step_below;     ///< which case needs the fewest devices for that?
  std::vector<FigureSettings> figures = {};  ///< to be drawn of results.csv
};

/// What the words of a config may be, and what it needs to know of other files.
struct ExperimentRules {
  std::vector<std::string> families;            ///< names of schedule families
  std::vector<std::string> orders{"captured"};  ///< names of linear orders
  /// Devices in the case's cluster, or of this machine if it is to be measured: the default of
  /// cases.devices, and its limit.
  std::function<std::size_t(const CaseConfig&)> devices;
  /// Ranks and microbatches of plan.file or plan.schedule.
  std::function<std::pair<std::size_t, std::size_t>(const PlanSettings& plan)>
      ranks_and_microbatches;
  /// Linear order of plan.file; empty = captured.
  std::function<std::string(const PlanSettings& plan)> order_of_plan;
  /// What plan.file was made for; empty = the defaults.
  std::function<Training(const PlanSettings& plan)> training_of_plan;
  /// Names of the device kinds in the case's cluster; empty = none can be calibrated.
  std::function<std::vector<std::string>(const CaseConfig&)> device_kinds;
};

/// Reads an experiment, applies `settings` ("key.path=value" each, as given to --set), and expands
/// the product of its cases, the last key of `cases` varying fastest. Errors: ConfigError.
Experiment read_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& settings, const ExperimentRules& rules);
/// The same of text at hand; paths in it are seen from the folder of `file`, whose name messages
/// have.
Experiment parse_experiment(std::string_view text, const std::filesystem::path& file,
                            const ExperimentRules& rules);

/// Every key of a config by its path: "select_by", "training", "training.precision".
std::vector<std::string> config_keys();

/// The keys at the top of the case's config with every default written out.
std::vector<SweptKey> resolved(const CaseConfig& config);
/// The same as YAML: equal text = equal case. Part of its digest.
std::string resolved_text(const CaseConfig& config);

/// "compute x 1.033, 3 ms a stage execution (table 1)": what is calibrated, for people; "" =
/// nothing is.
std::string calibration_text(const Request& request);
/// The keys of the cluster's file that its calibration replaces, for these kinds of devices.
Replaced calibrated_keys(const CaseConfig& config, const std::vector<std::string>& kinds);

/// `text` made fit to be a folder's name: other characters than letters, digits and "._+=,-" become
/// "_", as does a dot at the beginning.
std::string folder_name(std::string text);

/// "key=value,key=value" made fit to be a folder: other characters than letters, digits and
/// "._+=,-" become "_", a path stands for its stem, long names are cut and get a digest.
std::string case_name(const std::vector<SweptKey>& keys);

}  // namespace pfeife
