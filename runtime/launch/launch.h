// Our own launcher: ranks of this host as processes, started, watched and stopped together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/launch/shared_slots.h"

namespace pfeife {

/// What a rank tells its launcher: what it is doing, that it is alive, why it failed. In memory
/// that both map, so that it outlives the rank.
class Status {
 public:
  /// Beats until destroyed. The slot must outlive it.
  explicit Status(Slot& slot);
  ~Status();
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  void entering(const std::string& action);
  /// `gone`: as in RankFault.
  void failed(const std::string& reason, bool gone = false);
  /// What the ranks were given is wrong: nothing has started.
  void refused(const std::string& reason);
  /// The rank has done all it was to do.
  void finished();

 private:
  struct Beat;
  Slot& slot_;
  std::unique_ptr<Beat> beat_;
};

/// How ranks ended.
struct LocalEnd {
  std::string reason;        ///< one sentence naming rank, action and cause; "" = all ended well
  bool wrong_input = false;  ///< of a rank that Status::refused
};

/// Starts `ranks` copies of this program with the same arguments and waits for them. When one ends
/// badly, is killed or stalls (no sign of life for 5 s), the others get 3 s and are then killed.
/// No process and no file is left behind, not even by Ctrl-C (SIGINT, SIGTERM, SIGHUP).
LocalEnd run_local_ranks(std::size_t ranks, const std::vector<std::string>& arguments);

}  // namespace pfeife
