// profile.yaml: what each node of a graph costs on one device kind, as a file.
//
// Nodes, values and parameters are named as in the graph, so a profile is read together with its
// graph.
#pragma once

#include <filesystem>
#include <string>

#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// The text of profile.yaml. Equal profiles give equal bytes.
std::string profile_text(const Profile& profile, const Graph& graph);

/// Reads a profile of `graph`. Errors: ConfigError with the place: a profile of another graph, a
/// node that is missing, twice, or not in the graph, a negative figure, whatever the format does
/// not know.
Profile read_profile(const std::filesystem::path& file, const Graph& graph);

/// What a profile of any graph says of the runtime that made it, where it does.
struct ProfiledRuntime {
  std::optional<MeasuredVariation> variation;
  Nanoseconds executor_overhead{0};  ///< per action
  std::optional<StageOverheads> stage_overheads;
  std::optional<Nanoseconds> message_overhead;  ///< beyond what the link takes
};
/// Errors: ConfigError with the place.
ProfiledRuntime read_profiled_runtime(const std::filesystem::path& file);

/// Refuses a profile that was made for other training than asked for. Errors: ConfigError naming
/// file, what it was made with and what is asked for.
void check_profile(const Profile& profile, const std::filesystem::path& file,
                   const Training& training, const std::string& device_kind);

}  // namespace pfeife
