// Failures that are exceptions; expected outcomes (violations, infeasible plans) are values.
//   try { plan(model, cluster); } catch (const ConfigError& error) { std::puts(error.what()); }
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pfeife {

/// A place in an input file; line and column count from 1, 0 = unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};
/// "file:line:column", leaving out what is unknown.
std::string to_string(const SourceLocation& where);

/// Wrong input of the user: where, what was found, what is allowed, what to do. Exit code 2.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(SourceLocation where, const std::string& message);
  const SourceLocation& where() const { return where_; }

 private:
  SourceLocation where_;
};

/// A device, process or network that failed while running; names rank, action and cause. Exit
/// code 4.
class RuntimeFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A broken invariant of the program itself: a defect, never reachable from input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal_error(const char* condition, const char* file, int line,
                                       const std::string& message);

/// Checks an invariant, always on. Further arguments are streamed into the message.
#define PFEIFE_CHECK(condition, ...)                                                       \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::pfeife::throw_internal_error(#condition, __FILE__, __LINE__,                       \
                                     ::pfeife::stream_all(__VA_ARGS__ __VA_OPT__(, ) "")); \
  } while (false)

template <class... Parts>
std::string stream_all(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// The candidate nearest to `word` by edit distance, or "" if none is near: for "did you mean" in
/// messages.
std::string nearest_spelling(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace pfeife
