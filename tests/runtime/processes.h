// Programs as a user starts them: for tests of processes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "planner/io/plan/schedule_csv.h"
#include "planner/schedules/families.h"

namespace pfeife::testing {

/// How long an end may take: of ranks that were told of it, and of whole runs on a busy machine.
constexpr std::chrono::seconds kSoon{10}, kLong{60};

struct Ended {
  int code = -1;     ///< -1: killed by a signal
  std::string text;  ///< both streams
};

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Tries until it holds, at most `limit`.
inline bool holds_within(std::chrono::seconds limit, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// A program that runs, with some variables more in its environment; killed when no longer needed.
class Started {
 public:
  using Variables = std::map<std::string, std::string>;

  Started(const std::vector<std::string>& arguments, const Variables& variables,
          std::filesystem::path output)
      : output_(std::move(output)), process_(fork()) {
    if (process_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    dup2(file, 2);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() {
    if (ended_) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  pid_t process() const { return process_; }
  std::string text() const { return content_of(output_); }
  /// The end, which must come within `limit`.
  Ended wait(std::chrono::seconds limit) {
    int status = 0;
    ended_ = holds_within(limit, [&] { return waitpid(process_, &status, WNOHANG) == process_; });
    EXPECT_TRUE(ended_) << "still runs: " << text();
    return {ended_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1, text()};
  }

 private:
  std::filesystem::path output_;
  pid_t process_;
  bool ended_ = false;
};

/// A folder with a schedule for three ranks and another folder for the temporary files of programs.
class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("pfeife_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "tmp");
    std::ofstream(folder_ / "s.csv") << write_schedule(generate({"1f1b", 3, 4, 1, {}, {}}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What every pfeife-run of a tiny GPT on three ranks is given.
  std::vector<std::string> arguments(const std::vector<std::string>& rest) const {
    std::vector<std::string> all{PFEIFE_RUN};
    all.insert(all.end(), rest.begin(), rest.end());
    for (const std::string& more :
         {std::string("--cuts"), std::string("20 40"), std::string("--schedule"),
          (folder_ / "s.csv").string(), std::string("--model"),
          std::string(PFEIFE_SOURCE_DIR "/configs/models/tiny_gpt.pt2")})
      all.push_back(more);
    return all;
  }
  std::unique_ptr<Started> start(const std::vector<std::string>& program,
                                 Started::Variables variables = {},
                                 const std::string& output = "output") const {
    variables["TMPDIR"] = (folder_ / "tmp").string();
    return std::make_unique<Started>(program, variables, folder_ / output);
  }

  /// What is left of a run: folders where ranks met.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tmp"))
      names.push_back(entry.path().filename());
    return names;
  }
  /// Processes that our launcher has started as ranks, by rank.
  std::map<int, pid_t> ranks() const {
    std::map<int, pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string text = content_of(entry.path() / "environ");
      const std::size_t rank = text.find(std::string("\0RANK=", 6));
      if (text.find(folder_.string()) != std::string::npos && rank != std::string::npos &&
          text.find("PFEIFE_MEETING=") != std::string::npos)
        found[std::stoi(text.substr(rank + 6))] =
            static_cast<pid_t>(std::stol(entry.path().filename()));
    }
    return found;
  }

  std::filesystem::path folder_;
};

}  // namespace pfeife::testing
