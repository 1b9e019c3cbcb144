// The report's page for one plan that was written earlier.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace pfeife {

/// The plan (plan.yaml or its folder), predicted anew, beside the traces of a run of it, if there
/// are any: as for compare_with_traces. HTML that needs nothing else. Errors: ConfigError.
std::string plan_page(const std::filesystem::path& plan,
                      std::span<const std::filesystem::path> traces = {});

}  // namespace pfeife
