// The question of `pfeife-exp fits`, for architectures, config.json files and models of layers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/show/fits_table.h"
#include "planner/ir/machine/allocator_settings.h"
#include "planner/ir/model/optimizer.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

struct FitsQuestion {
  std::filesystem::path model;
  std::vector<std::filesystem::path> clusters;
  std::vector<std::int64_t> devices;     ///< empty = as many as each cluster's file has
  std::optional<std::int64_t> batch;     ///< sequences or samples a step
  std::optional<std::int64_t> sequence;  ///< tokens; of an architecture
  Optimizer optimizer = Optimizer::Adam;
  AllocatorSettings allocator = {};
  std::string precision = "bf16";                   ///< of an architecture, as `parallel.precision`
  std::optional<std::filesystem::path> times = {};  ///< of layers, of an architecture
  std::vector<double> prices;  ///< of a device-hour: none, one, or one a cluster
};

struct FitsAnswer {
  std::vector<FitRow> rows;
  std::string unit;                      ///< "tokens" or "samples"
  std::string what;                      ///< the step, in words
  std::optional<MeshQuestion> question;  ///< of an architecture, but for its devices
};

/// Errors: ConfigError of the files, and where the length of sequences is not known.
FitsAnswer fits(const FitsQuestion& question, std::size_t threads,
                const std::function<void(const FitRow&)>& done = {});

}  // namespace pfeife
