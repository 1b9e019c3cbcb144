#include "experiments/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace pfeife {
namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string remaining(std::chrono::duration<double> elapsed, std::size_t finished,
                      std::size_t total) {
  if (finished == 0 || elapsed.count() < 2) return "";
  const double left =
      elapsed.count() / static_cast<double>(finished) * static_cast<double>(total - finished);
  if (left < 1) return "";
  return left < 90 ? fmt::format(", {:.0f} s left", left)
                   : fmt::format(", {:.0f} min left", left / 60);
}

}  // namespace

Progress::Progress(std::size_t total, bool quiet)
    : total_(total),
      silent_(quiet || total == 0),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()),
      drawn_(started_) {
  if (!silent_ && terminal_) draw("");
}

Progress::~Progress() { clear(); }

void Progress::done(const std::string& what) {
  ++finished_;
  if (silent_) return;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_) {
    // Thousands of small cases: a line for each hundredth is enough.
    if (total_ <= 100 || finished_ * 100 / total_ != (finished_ - 1) * 100 / total_)
      fmt::print(stderr, "[{}/{}] {}\n", finished_, total_, what);
    return;
  }
  if (now - drawn_ < std::chrono::milliseconds(50) && finished_ < total_) return;
  drawn_ = now;
  draw(what);
}

void Progress::draw(const std::string& what) {
  constexpr std::size_t kWidth = 24;
  const std::size_t filled = kWidth * finished_ / total_;
  std::string line = fmt::format(
      "[{:#<{}}{:.<{}}] {}/{} cases{}  {}", "", filled, "", kWidth - filled, finished_, total_,
      remaining(std::chrono::steady_clock::now() - started_, finished_, total_), what);
  line.resize(std::min(line.size(), terminal_width() - 1));
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void Progress::clear() {
  if (silent_ || !terminal_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace pfeife
