// `pfeife-exp failures CONFIG --save ... --restart ... --repair ...`: the plan for one device less,
// and what failures leave of the speed with and without it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/goodput.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

struct FailuresQuestion {
  std::filesystem::path config;
  std::vector<std::string> settings = {};  ///< as --set has them
  StopRate rate = {};
  Recovery recovery = {};
  /// Devices of the whole run, which a failure of any stops: replicas of the pipeline. none = those
  /// of the config.
  std::optional<std::size_t> fleet = {};
  std::filesystem::path out = {};  ///< gets a folder for each of both plans; "" = none
};

/// A plan for so many devices a pipeline.
struct PlanOfDevices {
  std::size_t devices = 0;
  std::string plan;     ///< its name
  Nanoseconds step{0};  ///< estimated
  double rate = 0;      ///< samples per second of all replicas, without failures
};

struct FailuresAnswer {
  PlanOfDevices full;
  PlanOfDevices less;  ///< one device less in each replica
  std::size_t replicas = 1;
  double between = 0;         ///< mean seconds between failures of all devices
  bool several_lost = false;  ///< repairs take longer than that: several devices are lost at once
  TimeShares shares = {};
  /// Samples per second over a long run that waits until a lost device is back, or meanwhile goes
  /// on with the plan for one device less, or without the replica (0: there is one alone).
  double waits = 0, goes_on = 0, without_replica = 0;
};

/// Errors: ConfigError, also if the pipeline has one device alone; RuntimeFault if no plan fits.
FailuresAnswer plan_for_failures(const FailuresQuestion& question, std::size_t threads);

/// For people.
std::string failures_text(const FailuresAnswer& answer);

}  // namespace pfeife
