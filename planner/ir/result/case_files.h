// What the files are called that the folder of a case has beside the folders of its plans. No plan
// can have one of these names.
//   if (std::ranges::find(kCaseFiles, name) != kCaseFiles.end()) refuse(name);
#pragma once

#include <array>
#include <string_view>

namespace pfeife {

namespace case_file {
inline constexpr std::string_view kRecord = "case.json", kPlans = "plans.svg",
                                  kRankTimes = "rank_times.svg", kMemory = "memory.svg",
                                  kPartition = "partition.svg", kLinks = "links.svg",
                                  kTraces = "traces.json", kCluster = "cluster.yaml",
                                  kDigests = "files.sha256";
}  // namespace case_file

inline constexpr std::array kCaseFiles{
    case_file::kTraces,  case_file::kPlans,     case_file::kRankTimes,
    case_file::kMemory,  case_file::kPartition, case_file::kLinks,
    case_file::kCluster, case_file::kRecord,    case_file::kDigests};

}  // namespace pfeife
