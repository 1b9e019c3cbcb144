// The words of a certificate file: apart by blanks, a keyword at the begin of a line. Writer and
// reader have the same functions, so that one description of the format serves both.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/ir/basics/error.h"

namespace pfeife {

class CertificateWriter {
 public:
  std::string text;

  void line(const char* keyword) { text += std::string(text.empty() ? "" : "\n") + keyword; }
  /// The keyword of what is not always there; whether it is.
  bool line_if(const char* keyword, bool there) {
    if (there) line(keyword);
    return there;
  }
  void word(const std::string& value) { text += " " + (value.empty() ? "-" : value); }
  void number(std::int64_t& value) { text += " " + std::to_string(value); }
  void number(double& value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text += " " + std::string(digits, end);
  }
  template <class T>
  void size(std::vector<T>& values) {
    auto count = static_cast<std::int64_t>(values.size());
    number(count);
  }
};

class CertificateReader {
 public:
  CertificateReader(std::string_view text, std::string name)
      : text_(text), name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError({name_, line_, 0}, message + "; write the certificate anew");
  }
  void line(const char* keyword) {
    if (const std::string found(next()); found != keyword)
      fail(std::string("expected '") + keyword + "', found '" + found + "'");
  }
  bool line_if(const char* keyword, bool) {
    const std::size_t at = at_;
    const int line = line_;
    if (next() == keyword) return true;
    at_ = at, line_ = line;
    return false;
  }
  void word(std::string& value) {
    value = next();
    if (value == "-") value.clear();
  }
  template <class T>
  void number(T& value) {
    const std::string_view found = next();
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size())
      fail("expected a number, found '" + std::string(found) + "'");
  }
  template <class T>
  void size(std::vector<T>& values) {
    std::int64_t count = 0;
    number(count);
    if (count < 0 || static_cast<std::size_t>(count) > text_.size() - at_)
      fail("a list of " + std::to_string(count) + " entries does not fit in the file");
    values.resize(static_cast<std::size_t>(count));
  }
  void finish() {
    if (!next().empty()) fail("expected the end");
  }

 private:
  std::string_view next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      line_ += text_[at_++] == '\n';
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\n') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  int line_ = 2;
};

}  // namespace pfeife
