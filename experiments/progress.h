// What the user sees while cases are computed: a bar on a terminal, plain lines elsewhere; on
// standard error.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace pfeife {

class Progress {
 public:
  /// `total` cases; silent if `quiet` or if there is nothing to do.
  Progress(std::size_t total, bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// A case is done; `what` names it.
  void done(const std::string& what);
  /// Removes the bar, so that something else can be written.
  void clear();

 private:
  void draw(const std::string& what);

  std::size_t total_, finished_ = 0;
  bool silent_, terminal_;
  std::chrono::steady_clock::time_point started_, drawn_;
};

}  // namespace pfeife
