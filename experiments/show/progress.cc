#include "experiments/show/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace pfeife {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string rounded(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

std::string share_text(double share) {
  if (share <= 0) return "";
  // All of it is done when the step is over, which then says nothing any more.
  return fmt::format(", {} %", std::min(99, static_cast<int>(100 * share)));
}

std::string progress_bar(std::size_t finished, std::size_t total,
                         std::chrono::duration<double> elapsed, const std::string& what,
                         std::size_t width) {
  constexpr std::size_t kBar = 24;
  const std::size_t filled = kBar * finished / total;
  std::string line =
      fmt::format("[{:#<{}}{:.<{}}] {}/{} cases", "", filled, "", kBar - filled, finished, total);
  if (elapsed.count() >= 1) line += ", " + rounded(elapsed.count());
  const double left = finished == 0 ? 0
                                    : elapsed.count() / static_cast<double>(finished) *
                                          static_cast<double>(total - finished);
  if (elapsed.count() >= 2 && left >= 1) line += ", " + rounded(left) + " left";
  if (!what.empty()) line += "  " + what;
  line.resize(std::min(line.size(), width - 1));
  return line;
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

void Progress::begin(const std::string& what, const std::string& step, const std::string& remedy) {
  const std::lock_guard lock(mutex_);
  step_ = what + ": " + step;
  remedy_ = remedy;
  share_ = 0;
  step_started_ = Clock::now();
  if (!silent_ && terminal_ && Clock::now() - drawn_ >= std::chrono::milliseconds(50)) draw();
}

void Progress::reached(double share) {
  const std::lock_guard lock(mutex_);
  share_ = std::max(share_, share);
}

void Progress::note(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (!silent_ && !sentence.empty()) say((terminal_ ? "\r\033[K" : "") + sentence + "\n");
}

void Progress::done(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++finished_;
  if (silent_) return;
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
      say(fmt::format("[{}/{}] after {}: {}\n", finished_, total_,
                      rounded(std::chrono::duration<double>(elapsed).count()), at()));
    }
    if (stopped_.wait_for(lock, stop, pause, [] { return false; }) || stop.stop_requested()) return;
  }
}

std::string Progress::at() const {
  const bool slow = Clock::now() - step_started_ >= std::chrono::minutes(1);
  return step_ + share_text(share_) + (slow && !remedy_.empty() ? " (" + remedy_ + ")" : "");
}

void Progress::draw() const {
  say("\r\033[K" +
      progress_bar(finished_, total_, Clock::now() - started_, at(), terminal_width()));
}

/// In one call, without a lock that a process forked meanwhile would inherit.
void Progress::say(const std::string& text) const {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace pfeife
