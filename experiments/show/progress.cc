#include "experiments/show/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "planner/io/files/terminal.h"
#include "planner/ir/basics/grid.h"

namespace pfeife {
namespace {

/// "40 s", "2:05 min", "3:20 h": fine enough to be seen passing.
std::string rounded(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 90) return fmt::format("{} s", whole);
  if (whole < 90 * 60) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

constexpr double kLastThirdBegins = 2.0 / 3.0;  // of the time so far

}  // namespace

std::string share_text(double share) {
  if (share <= 0) return "";
  // All of it is done when the step is over, which then says nothing any more.
  return fmt::format(", {} %", std::min(99, static_cast<int>(100 * share)));
}

void TimeLeft::reached(double share, Seconds elapsed) {
  if (share <= 0 || elapsed.count() <= 0) return;
  if (!reached_.empty() && share <= reached_.back().share) return;
  reached_.push_back({std::min(share, 1.0), elapsed});
  while (reached_.size() > 1 && reached_[1].elapsed <= elapsed * kLastThirdBegins)
    reached_.erase(reached_.begin());
}

std::optional<TimeLeft::Seconds> TimeLeft::at(Seconds elapsed) const {
  const Seconds begin = elapsed * kLastThirdBegins;
  if (reached_.empty() || reached_.front().elapsed > begin) return std::nullopt;
  // While nothing is done the end moves away; it is latest right before something is.
  Seconds soonest = Seconds::max(), latest{0};
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    const Seconds until = i + 1 < reached_.size() ? reached_[i + 1].elapsed : elapsed;
    if (until < begin) continue;
    soonest = std::min(soonest, std::max(begin, reached_[i].elapsed) / reached_[i].share);
    latest = std::max(latest, until / reached_[i].share);
  }
  const Seconds left = reached_.back().end() - elapsed;
  if (left.count() < 1 || latest - elapsed > kAgree * (soonest - elapsed)) return std::nullopt;
  return left;
}

std::string progress_bar(std::size_t finished, std::size_t total, TimeLeft::Seconds elapsed,
                         std::optional<TimeLeft::Seconds> left, const std::string& what,
                         const std::string& doing, std::size_t width) {
  std::string figures = fmt::format(" {}/{} cases", finished, total);
  if (elapsed.count() >= 1) figures += ", " + rounded(elapsed.count());
  if (elapsed.count() >= 2 && left) figures += ", " + rounded(left->count()) + " left";
  const std::size_t bar = width >= 76 ? 24 : 8;
  const std::size_t filled = bar * finished / total;
  std::string line = fmt::format("[{:#<{}}{:.<{}}]{}", "", filled, "", bar - filled, figures);
  const std::size_t room = width - 1 > line.size() + 2 ? width - 1 - line.size() - 2 : 0;
  constexpr std::size_t kLeastName = 6;
  std::string at = what;
  if (!doing.empty()) {
    const std::size_t behind = doing.size() + 2;
    at = room < behind + kLeastName ? doing : clipped(what, room - behind) + ": " + doing;
  }
  if (!what.empty() && room > 2) line += "  " + clipped(at, room);
  return clipped(line, width - 1);
}

Progress::Progress(std::size_t total, bool quiet)
    : total_(total),
      silent_(quiet || total == 0),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(Clock::now()),
      drawn_(started_) {
  if (!silent_) ticker_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

Progress::~Progress() {
  if (silent_) return;
  ticker_.request_stop();
  ticker_.join();
  if (terminal_) say("\r\033[K");
}

void Progress::begin(const std::string& what, std::size_t cases, const Step& step) {
  const std::lock_guard lock(mutex_);
  what_ = what, at_once_ = cases, step_ = step;
  share_ = 0;
  step_started_ = Clock::now();
  judge();
  if (!silent_ && terminal_ && Clock::now() - drawn_ >= std::chrono::milliseconds(50)) draw();
}

void Progress::reached(double share) {
  const std::lock_guard lock(mutex_);
  if (share <= share_) return;
  share_ = share;
  judge();
}

/// What is done of everything, told to the forecast.
void Progress::judge() {
  const double of_case = step_.from + (step_.to - step_.from) * share_;
  const double done = static_cast<double>(finished_) + of_case * static_cast<double>(at_once_);
  left_.reached(done / static_cast<double>(total_), Clock::now() - started_);
}

void Progress::note(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (!silent_ && !sentence.empty()) say((terminal_ ? "\r\033[K" : "") + sentence + "\n");
}

void Progress::done(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++finished_;
  at_once_ -= at_once_ > 0 ? 1 : 0;
  if (silent_) return;
  judge();
  if (!terminal_) {
    // Thousands of small cases: a line for each hundredth is enough.
    if (total_ <= 100 || finished_ * 100 / total_ != (finished_ - 1) * 100 / total_)
      say(fmt::format("[{}/{}] {}\n", finished_, total_, what));
    return;
  }
  if (Clock::now() - drawn_ < std::chrono::milliseconds(50) && finished_ < total_) return;
  drawn_ = Clock::now();
  draw();
}

void Progress::tick(const std::stop_token& stop) {
  const std::chrono::seconds pause(terminal_ ? 1 : 60);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (terminal_) {
      draw();
    } else if (const auto elapsed = Clock::now() - started_; elapsed >= pause) {
      say(fmt::format("[{}/{}] after {}: {}{}{}\n", finished_, total_,
                      rounded(std::chrono::duration<double>(elapsed).count()), what_,
                      what_.empty() ? "" : ": ", doing()));
    }
    if (stopped_.wait_for(lock, stop, pause, [] { return false; }) || stop.stop_requested()) return;
  }
}

std::string Progress::doing() const {
  const bool slow = Clock::now() - step_started_ >= std::chrono::minutes(1);
  std::string text = step_.name + share_text(share_);
  if (slow && *step_.remedy != 0) text += std::string(" (") + step_.remedy + ")";
  return text;
}

void Progress::draw() const {
  const auto elapsed = Clock::now() - started_;
  say("\r\033[K" +
      progress_bar(finished_, total_, elapsed, left_.at(elapsed), what_, doing(), error_width()));
}

/// In one call, without a lock that a process forked meanwhile would inherit.
void Progress::say(const std::string& text) const {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace pfeife
