// The planner against simpler ones on the same problems: what the study and its test share.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace pfeife {

/// One planning problem, by name. Files lie in configs/.
struct InstanceSpec {
  std::string model;    ///< models/NAME.pt2, pipedream/NAME or piper/NAME
  std::string cluster;  ///< clusters/NAME.yaml
  std::size_t ranks = 1, microbatches = 1;
  /// Share of what 1F1B on min-max cuts needs on its fullest rank that every device has; 0 = what
  /// the devices have.
  double memory = 0;
};

/// The hundred of the study: every model shipped that is not a toy, and the published profiles, in
/// five settings each.
std::vector<InstanceSpec> all_instances();

/// Layers and cluster of instances, read once each.
class InstanceReader {
 public:
  explicit InstanceReader(std::filesystem::path configs) : configs_(std::move(configs)) {}

  struct Instance {
    std::shared_ptr<const Layers> layers;
    std::shared_ptr<const Cluster> cluster;
    std::vector<DeviceId> device_of_rank;
    std::vector<Bytes> memory_limit;  ///< [rank]

    Problem problem(std::vector<ScheduleSpec> schedules) const {
      return {.layers = *layers,
              .cluster = *cluster,
              .schedules = std::move(schedules),
              .device_of_rank = device_of_rank,
              .memory_limit = memory_limit};
    }
  };
  Instance read(const InstanceSpec& spec);

 private:
  std::filesystem::path configs_;
  std::map<std::string, std::shared_ptr<const Cluster>> clusters_;
  std::map<std::string, std::shared_ptr<const Layers>> layers_;
};

/// What one planner comes to on an instance.
struct JudgedPlan {
  bool fits = false;        ///< by our memory rule, within the limits
  Nanoseconds estimate{0};  ///< if there is a plan at all
  std::string plan;         ///< family and knobs; why not, if it does not fit
};

/// The planners compared with, in the order of PlannerComparison::others.
inline constexpr std::array kOthers{
    "reference",         // its algorithm, our memory rule and limits
    "reference memory",  // the same by its own memory formula, 85 % of the limits
    "min-max 1F1B",      // equal-time cuts
    "by time 1F1B",      // each cut where the next share of the total time is reached
    "by layers 1F1B",    // as many layers a stage
};

struct PlannerComparison {
  JudgedPlan ours;
  std::optional<Bound> bound;
  bool proven_infeasible = false;
  std::array<JudgedPlan, kOthers.size()> others;
  double search_s = 0, reference_s = 0;  ///< measured, of ours and of the first of the others
};

/// `effort` for our planner; `stages_per_rank` to try for it and for reference mode.
PlannerComparison compare(const InstanceReader::Instance& instance, std::size_t microbatches,
                          const std::vector<std::size_t>& stages_per_rank, std::size_t effort);

}  // namespace pfeife
