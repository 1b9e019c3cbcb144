// Messages that users see, each pinned once: whole, and where they can be read aloud together, in
// messages.txt beside the test. To write what the tests of a program now say there, and read the
// difference: PFEIFE_WRITE_MESSAGES=1 build/release/tests/test_AREA.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace pfeife {

/// The messages of an area's tests: "== Suite.Test", then a line each, "\n" for the end of a line.
class GoldenMessages {
 public:
  explicit GoldenMessages(std::filesystem::path file) : file_(std::move(file)) {
    std::ifstream in(file_);
    std::string line, test;
    while (std::getline(in, line)) {
      if (line.starts_with("== "))
        test = line.substr(3);
      else
        said_[test].push_back(line);
    }
  }

  /// What the test says as its n-th message should read; nullptr: nothing is known of it.
  const std::string* expected(const std::string& test, std::size_t n) const {
    const auto of = said_.find(test);
    return of != said_.end() && n < of->second.size() ? &of->second[n] : nullptr;
  }
  void write(const std::string& test, std::size_t n, const std::string& said) {
    auto& of = said_[test];
    of.resize(n), of.push_back(said);
    std::ofstream out(file_);
    for (const auto& [name, lines] : said_) {
      out << "== " << name << "\n";
      for (const std::string& line : lines) out << line << "\n";
    }
  }

 private:
  std::filesystem::path file_;
  std::map<std::string, std::vector<std::string>> said_;
};

/// One line without what differs from machine to machine: where the repository is, and temporary
/// folders.
inline std::string without_places(std::string said) {
  const std::string source = PFEIFE_SOURCE_DIR;
  for (std::size_t at; (at = said.find(source)) != std::string::npos;)
    said.replace(at, source.size(), "SOURCE");
  const std::string temporary = std::filesystem::temp_directory_path().string();
  said = std::regex_replace(said, std::regex(temporary + "/[^/ ':;,]*"), "FOLDER");
  std::string line;
  for (const char c : said) c == '\n' ? line += "\\n" : line += c;
  return line;
}

inline void expect_message(const std::string& said, const char* file, int line) {
  static const ::testing::TestInfo* test = nullptr;
  static std::size_t number = 0;
  const auto* now = ::testing::UnitTest::GetInstance()->current_test_info();
  number = now == test ? number + 1 : 0, test = now;
  const std::string name = std::string(now->test_suite_name()) + "." + now->name();
  const std::string source = file;  // as the compiler was called: from anywhere
  GoldenMessages golden(std::filesystem::path(PFEIFE_SOURCE_DIR) /
                        std::filesystem::path(source.substr(source.rfind("tests/"))).parent_path() /
                        "messages.txt");
  const std::string text = without_places(said);
  if (std::getenv("PFEIFE_WRITE_MESSAGES")) return golden.write(name, number, text);
  const std::string* expected = golden.expected(name, number);
  if (expected == nullptr)
    ADD_FAILURE_AT(file, line) << "messages.txt has no such message of " << name << ": " << text;
  else if (*expected != text)
    ADD_FAILURE_AT(file, line) << "should say: " << *expected << "\nsays:       " << text;
}

/// `said` must be what messages.txt beside this source has as the test's next message.
#define EXPECT_MESSAGE(...) ::pfeife::expect_message(__VA_ARGS__, __FILE__, __LINE__)

}  // namespace pfeife
