// What the user sees while cases are computed: a bar on a terminal, plain lines elsewhere; on
// standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace pfeife {

/// The bar on a terminal `width` characters wide: how many cases are finished, the time so far and
/// the time left (none before there is something to judge by), and `what` is being computed.
std::string progress_bar(std::size_t finished, std::size_t total,
                         std::chrono::duration<double> elapsed, const std::string& what,
                         std::size_t width);

/// ", 42 %" of a step that is not over: 99 % at most; nothing of 0.
std::string share_text(double share);

class Progress {
 public:
  /// `total` cases; silent if `quiet` or if there is nothing to do. A terminal is redrawn every
  /// second; elsewhere a line a minute says what a long case is at.
  Progress(std::size_t total, bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Work begins on what is named so; `step` says which part of it. `remedy`, what makes the step
  /// shorter, is shown once it has taken a minute.
  void begin(const std::string& what, const std::string& step, const std::string& remedy = "");
  /// So much of what begin() has said is done, of 1; less than before changes nothing.
  void reached(double share);
  /// A sentence to be read; "" = none.
  void note(const std::string& sentence);
  /// A case is done; `what` names it.
  void done(const std::string& what);

 private:
  void tick(const std::stop_token& stop);
  std::string at() const;
  void draw() const;
  void say(const std::string& text) const;

  const std::size_t total_;
  const bool silent_, terminal_;
  const std::chrono::steady_clock::time_point started_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::size_t finished_ = 0;
  std::string step_;  ///< what is being computed, and which part of it
  std::string remedy_;
  double share_ = 0;  ///< of the step that is done, if known
  std::chrono::steady_clock::time_point step_started_;
  std::chrono::steady_clock::time_point drawn_;
  std::jthread ticker_;  ///< last: it reads the others
};

}  // namespace pfeife
