#include "planner/ir/basics/printable.h"

#include "planner/ir/basics/utf8.h"

namespace pfeife {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string written_out(unsigned code) {
  if (code == '\n') return "\\n";
  if (code < 0x100) return {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
  return {'\\',
          'u',
          kDigits[code >> 12],
          kDigits[code >> 8 & 15],
          kDigits[code >> 4 & 15],
          kDigits[code & 15]};
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// The quote that is open at the place of a text that is read from left to right. An apostrophe
/// behind a letter opens none.
class OpenQuote {
 public:
  bool any() const { return quote_ != 0; }
  void see(std::string_view text, std::size_t at) {
    const char c = text[at];
    if (c != '"' && c != '\'') return;
    if (quote_ == c)
      quote_ = 0;
    else if (quote_ == 0 && (c == '"' || at == 0 || !is_word(text[at - 1])))
      quote_ = c;
  }

 private:
  char quote_ = 0;
};

std::string written_out(std::string_view text, bool in_line) {
  std::string shown;
  OpenQuote quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, length == 0 ? 1 : length);
    const unsigned code = code_point(character);
    quote.see(text, at);
    if (length > 0 && (code == '\n' ? !in_line && !quote.any() : !acts_on_text(code)))
      shown += character;
    else
      shown += written_out(code);
    at += character.size();
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return written_out(text, false); }
std::string printable_line(std::string_view text) { return written_out(text, true); }

}  // namespace pfeife
