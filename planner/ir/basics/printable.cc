#include "planner/ir/basics/printable.h"

namespace pfeife {

static std::string written_out(std::string_view text, bool in_line) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  bool in_name = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"') in_name = !in_name;
    if (c == '\n' ? !in_name && !in_line : byte >= 0x20 && byte != 0x7F)
      shown += c;
    else if (c == '\n')
      shown += "\\n";
    else
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return shown;
}

std::string printable(std::string_view text) { return written_out(text, false); }
std::string printable_line(std::string_view text) { return written_out(text, true); }

}  // namespace pfeife
