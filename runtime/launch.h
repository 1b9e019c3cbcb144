// Local ranks as processes: started, watched, and stopped together.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/ids.h"

namespace pfeife {

/// Which rank this process is, if a launcher started it.
struct RankEnvironment {
  RankId rank;
  std::size_t ranks = 0;
  std::filesystem::path folder;  ///< where the ranks meet
};
/// From RANK, WORLD_SIZE and PFEIFE_MEETING. ConfigError if only a part is set or no number.
std::optional<RankEnvironment> rank_environment();

/// What a rank tells its launcher: what it is doing, that it is alive, why it failed. In memory
/// that both map, so that it outlives the rank.
class Status {
 public:
  /// Maps the slot of `rank` in `folder` and beats until destroyed.
  explicit Status(const RankEnvironment& environment);
  ~Status();
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  void entering(const std::string& action);
  void failed(const std::string& reason);

 private:
  struct Beat;
  struct Slot* slot_;
  std::unique_ptr<Beat> beat_;
};

/// Starts `ranks` copies of this program with the same arguments and waits for them. When one ends
/// badly, is killed or stalls (no sign of life for 5 s), the others get 3 s and are then killed.
/// Returns an empty text if all ended well, else one sentence naming rank, action and cause. No
/// process and no file is left behind, not even by Ctrl-C (SIGINT, SIGTERM, SIGHUP).
std::string run_local_ranks(std::size_t ranks, const std::vector<std::string>& arguments);

}  // namespace pfeife
