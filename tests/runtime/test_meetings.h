// Meetings of ranks that tests start themselves: as threads, or as processes.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "planner/io/files/atomic_file.h"
#include "runtime/launch/meeting.h"

namespace pfeife::testing {

/// Threads meet in one object for all. `heard` is called with every line that is left.
class MeetingOfThreads final : public Meeting {
 public:
  explicit MeetingOfThreads(std::function<void(Topic, RankId, const std::string&)> heard = {})
      : heard_(std::move(heard)) {}
  void put(Topic topic, RankId rank, const std::string& line) override {
    if (heard_) heard_(topic, rank, line);
    const std::lock_guard lock(mutex_);
    lines_[{topic, rank}] = line;
  }
  std::optional<std::string> find(Topic topic, RankId rank) override {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find({topic, rank});
    return found == lines_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string host() const override { return ""; }

 private:
  std::function<void(Topic, RankId, const std::string&)> heard_;
  std::mutex mutex_;
  std::map<std::pair<Topic, RankId>, std::string> lines_;
};

/// Processes meet in a folder.
class MeetingInFolder final : public Meeting {
 public:
  explicit MeetingInFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void put(Topic topic, RankId rank, const std::string& line) override {
    write_file(file_of(topic, rank), line);
  }
  std::optional<std::string> find(Topic topic, RankId rank) override {
    std::ifstream file(file_of(topic, rank));
    std::string line;
    return std::getline(file, line) ? std::optional(line) : std::nullopt;
  }
  std::string host() const override { return ""; }

 private:
  std::filesystem::path file_of(Topic topic, RankId rank) const {
    return folder_ / (std::to_string(static_cast<int>(topic)) + "_" + to_string(rank));
  }
  std::filesystem::path folder_;
};

}  // namespace pfeife::testing
