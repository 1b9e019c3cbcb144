// What the user sees while cases are computed: a bar on a terminal, plain lines elsewhere; on
// standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace pfeife {

/// How long work will take if it goes on as fast as so far. Said only while that can be believed:
/// where the forecasts of the last third of the time, made at any moment of it, do not leave more
/// than kAgree times as long as each other. What stalls, or rushes, is silent.
class TimeLeft {
 public:
  using Seconds = std::chrono::duration<double>;
  static constexpr double kAgree = 1.5;
  /// So much of the work, of 1, is done by then; less than before changes nothing.
  void reached(double share, Seconds elapsed);
  /// Falls with the clock while nothing is done. Nothing below a second.
  std::optional<Seconds> at(Seconds elapsed) const;

 private:
  struct Reached {
    double share = 0;
    Seconds elapsed{0};
    Seconds end() const { return elapsed / share; }  ///< of all work, as it looks then
  };
  std::vector<Reached> reached_;  // rising; the last that is older than a third, and those after it
};

/// The bar on a terminal `width` characters wide: how many cases are finished, the time so far and
/// the time left, `what` is being computed and what is `doing` to it. Where there is too little
/// room the bar gets shorter, and `what` ends in ".." or is left out: what moves is seen longest.
std::string progress_bar(std::size_t finished, std::size_t total, TimeLeft::Seconds elapsed,
                         std::optional<TimeLeft::Seconds> left, const std::string& what,
                         const std::string& doing, std::size_t width);

/// ", 42 %" of a step that is not over: 99 % at most; nothing of 0.
std::string share_text(double share);

/// A part of the work on a case: from which share of it to which.
struct Step {
  const char* name;
  double from, to;
  const char* remedy = "";  ///< what makes it shorter
};

class Progress {
 public:
  /// `total` cases; silent if `quiet` or if there is nothing to do. A terminal is redrawn every
  /// second; elsewhere a line a minute says what a long case is at.
  Progress(std::size_t total, bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// A step begins for so many cases at a time, which are named so. Its remedy is shown once it
  /// has taken a minute.
  void begin(const std::string& what, std::size_t cases, const Step& step);
  /// So much of what begin() has said is done, of 1; less than before changes nothing.
  void reached(double share);
  /// A sentence to be read; "" = none.
  void note(const std::string& sentence);
  /// A case is done; `what` names it.
  void done(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;
  void tick(const std::stop_token& stop);
  void judge();
  std::string doing() const;
  void draw() const;
  void say(const std::string& text) const;

  const std::size_t total_;
  const bool silent_, terminal_;
  const Clock::time_point started_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::size_t finished_ = 0, at_once_ = 1;
  std::string what_;  ///< is being computed
  Step step_{"", 0, 0};
  double share_ = 0;  ///< of the step that is done, if known
  TimeLeft left_;
  Clock::time_point step_started_, drawn_;
  std::jthread ticker_;  ///< last: it reads the others
};

}  // namespace pfeife
