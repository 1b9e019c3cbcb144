#include "planner/io/files/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace pfeife {
namespace {

/// 0 if it is no terminal, or one that does not say.
std::size_t terminal_width(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::size_t output_width() {
  constexpr std::size_t kUsual = 80, kLeast = 40;
  std::size_t width = terminal_width(STDOUT_FILENO);
  if (const char* columns = std::getenv("COLUMNS"); width == 0 && columns != nullptr)
    width = static_cast<std::size_t>(std::max(0, std::atoi(columns)));
  return width == 0 ? kUsual : std::max(width, kLeast);
}

bool output_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

bool output_has_colours() {
  if (!output_is_terminal()) return false;
  const char* const none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::size_t error_width() {
  const std::size_t width = terminal_width(STDERR_FILENO);
  return width == 0 ? 80 : width;
}

}  // namespace pfeife
