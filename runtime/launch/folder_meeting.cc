#include <fstream>

#include "planner/io/files/atomic_file.h"
#include "runtime/launch/meeting.h"

namespace pfeife {
namespace {

class FolderMeeting final : public Meeting {
 public:
  explicit FolderMeeting(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void put(RankId rank, const std::string& line) override { write_file(file_of(rank), line); }
  std::optional<std::string> find(RankId rank) override {
    std::ifstream file(file_of(rank));
    std::string line;
    if (!std::getline(file, line)) return {};
    return line;
  }
  std::string host() const override { return ""; }

 private:
  std::filesystem::path file_of(RankId rank) const { return folder_ / ("rank_" + to_string(rank)); }
  std::filesystem::path folder_;
};

}  // namespace

std::unique_ptr<Meeting> meeting_in_folder(const std::filesystem::path& folder) {
  return std::make_unique<FolderMeeting>(folder);
}

}  // namespace pfeife
