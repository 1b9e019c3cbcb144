// Golden files: tests/data/families/FAMILY_rR_mM_sV[_kS][_bK][_pP].csv is what the family makes at
// that point (R ranks, M microbatches, V stages a rank, S slices a microbatch, loop batch K,
// prefetch P). Every family has one
// at least.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

ScheduleSpec spec_of(const std::string& stem) {
  static const std::regex pattern(
      R"((.+)_r(\d+)_m(\d+)_s(\d+)(?:_k(\d+))?(?:_b(\d+))?(?:_p(\d+))?)");
  std::smatch part;
  EXPECT_TRUE(std::regex_match(stem, part, pattern)) << stem;
  ScheduleSpec spec{.family = part[1],
                    .ranks = std::stoul(part[2]),
                    .microbatches = std::stoul(part[3]),
                    .stages_per_rank = std::stoul(part[4])};
  if (part[5].matched) spec.slices = std::stoul(part[5]);
  if (part[6].matched) spec.loop_batch = std::stoul(part[6]);
  if (part[7].matched) spec.prefetch = {std::stoul(part[7])};
  return spec;
}

TEST(GoldenSchedules, EveryFileIsMadeLetterForLetterAndEveryFamilyHasOne) {
  std::set<std::string> seen;
  for (const auto& entry :
       std::filesystem::directory_iterator(PFEIFE_SOURCE_DIR "/tests/data/families")) {
    const ScheduleSpec spec = spec_of(entry.path().stem().string());
    EXPECT_EQ(write_schedule(generate(spec)), read_file(entry.path())) << entry.path();
    seen.insert(spec.family);
  }
  for (const auto table : {families(), shared_head_families()})
    for (const Family& known : table) EXPECT_TRUE(seen.contains(known.name)) << known.name;
}

}  // namespace
}  // namespace pfeife
