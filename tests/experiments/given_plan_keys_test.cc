// A plan that is given as a file: what its plan.yaml says is done, or refused. Nothing that is
// shown of the plan may be said of other rows.
#include <gmock/gmock.h>

#include <cctype>

#include "planner/schedules/families.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GivenPlanKeys : public ProgramTest {
 protected:
  /// Two devices that differ, five layers; on the first device what is saved can leave in time.
  GivenPlanKeys() {
    write("layers.csv",
          "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
          "saved_bytes,weight_saved_bytes,temporary_bytes,optimizer_ms\n"
          "a,10,11,9,1000000,2000000,30000000,10000000,1000000,1\n"
          "b,7,8,6,1000000,4000000,20000000,10000000,1000000,1\n"
          "c,12,13,10,2000000,3000000,40000000,20000000,1000000,2\n"
          "d,5,5,5,1000000,2000000,10000000,5000000,0,1\n"
          "e,9,9,8,0,6000000,30000000,0,0,1\n");
    write("two.yaml",
          "version: 1\nname: two\n"
          "device_kinds:\n"
          "  k: {memory: 400 MB, memory_bandwidth: 100 GB/s, host_link: {bandwidth: 20 GB/s}}\n"
          "  j: {memory: 300 MB, memory_bandwidth: 100 GB/s, host_link: {bandwidth: 20 GB/s}}\n"
          "devices: [{kind: k}, {kind: j}]\n"
          "links: [{name: w, between: [[0, 1]], bandwidth: 1 GB/s, latency: 100 us}]\n"
          "routes: [{over: w}]\n");
    write("search.yaml",
          "version: 1\nmodel: layers.csv\ncluster: two.yaml\nbaselines: []\nengines: [estimate]\n"
          "cases: {devices: [2], microbatches: [4]}\n"
          "plan: {families: [1f1b], stages_per_rank: [1], recompute: none, cuts: [2]}\n");
    write("given.yaml",
          "version: 1\nmodel: layers.csv\ncluster: two.yaml\nplan: {file: given/plan.yaml}\n"
          "baselines: []\nengines: [estimate]\n");
    EXPECT_EQ(run({"search.yaml", "--out", "found", "--quiet"}).code, 0);
    std::filesystem::create_directory(folder_ / "given");
    const std::string planned = "found/devices=2,microbatches=4/planned/";
    write("given/schedule.csv", read(planned + "schedule.csv"));
    plan_ = read(planned + "plan.yaml");
  }

  /// What came of the plan: its rows, its figures, and what is said of it; nothing if it is
  /// refused.
  struct Came {
    std::string rows, figures, said;
    bool operator==(const Came&) const = default;
  };
  std::optional<Came> given(const std::string& plan) {
    write("given/plan.yaml", plan);
    std::filesystem::remove_all(folder_ / "out");
    outcome_ = run({"given.yaml", "--out", "out", "--quiet"});
    if (outcome_.code == 2) return std::nullopt;
    const std::string planned = "out/devices=2,microbatches=4/planned/";
    Came came{read(planned + "schedule.csv"), "", read(planned + "plan.yaml")};
    for (const char* column : {"estimate_ms", "peak_memory_bytes", "feasible", "bubble_fraction",
                               "saved_bytes_of_rank", "samples_per_s"})
      came.figures += result("out", "planned", column) + " ";
    for (const char* column : {"family", "knobs", "stages_per_rank", "microbatches", "cuts"})
      came.said += result("out", "planned", column) + "\n";
    return came;
  }
  std::string with_line(const std::string& line) const {
    std::string text = plan_;
    return text.insert(text.find("predicted:"), line + "\n");
  }
  std::string with(const std::string& old, const std::string& changed) const {
    std::string text = plan_;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old << " is not in\n" << text;
    return at == std::string::npos ? text : text.replace(at, old.size(), changed);
  }

  std::string plan_;
  Outcome outcome_;
};

// Either the change is refused, or it changes rows or figures, or what is written of the plan does
// not have it.
TEST_F(GivenPlanKeys, AreDoneOrRefusedOrNotShown) {
  const auto base = given(plan_);
  ASSERT_TRUE(base) << outcome_.err;
  const auto is_honest = [&](const std::string& changed) {
    const auto came = given(changed);
    return !came || came->rows != base->rows || came->figures != base->figures ||
           came->said == base->said;
  };
  std::vector<std::string> changes{
      with("family: \"1f1b\"", "family: \"gpipe\""),
      with("family: \"1f1b\"", "family: \"zb_h1\""),
      with("family: \"1f1b\"", "family: \"mine\""),
      with("family: \"1f1b\"", "family: \"forward\""),
      with("recompute: [false", "recompute: [true"),
      with_line("recompute_except_last: true"),
      with_line("recompute_blocks: [{layers: [0, 1]}]"),
      with_line("offload: [1, 0]"),
      with_line("offload: [0.5, 0]"),
      with_line("offload: [1, 1]"),
      with_line("offload: [0, 0.25]"),
      with_line("receives: at_need"),
      with_line("clip_norm: 1"),
  };
  for (const char* knob :
       {"prefetch: [1]", "loop_batch: 2", "slices: 2", "slice_lengths: equal_time"})
    changes.push_back(with("family: \"1f1b\"", std::string("family: \"1f1b\"\n  ") + knob));
  changes.push_back(with("prefetch: [1]", "prefetch: [0]"));
  // Every number, but for those of digests, and for a prefetch of 2, which is that of 1 here.
  ASSERT_EQ(generate({"1f1b", 2, 4, 1, {}, {1}}), generate({"1f1b", 2, 4, 1, {}, {2}}));
  for (std::size_t at = 0; at < plan_.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(plan_[at])) == 0) continue;
    std::size_t end = at;
    while (std::isalnum(static_cast<unsigned char>(plan_[end])) != 0) ++end;
    const std::string word = plan_.substr(at, end - at);
    const bool inside = at > 0 && std::isalnum(static_cast<unsigned char>(plan_[at - 1])) != 0;
    const std::size_t start = at;
    const bool is_prefetch = plan_.substr(0, start).ends_with("prefetch: [");
    at = end;
    if (inside || is_prefetch || word.size() > 15 ||
        word.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::string changed = plan_;
    changes.push_back(changed.replace(start, word.size(), std::to_string(std::stoll(word) + 1)));
  }
  ASSERT_GT(changes.size(), 25U);
  for (const std::string& changed : changes) EXPECT_TRUE(is_honest(changed)) << changed;
}

TEST_F(GivenPlanKeys, SharesPutCopiesIntoRowsThatHaveNone) {
  const auto base = given(plan_);
  ASSERT_TRUE(base) << outcome_.err;
  EXPECT_THAT(base->rows, Not(HasSubstr("OFFLOAD")));
  const auto came = given(with_line("offload: [1, 0]"));
  ASSERT_TRUE(came) << outcome_.err;
  EXPECT_THAT(came->rows, HasSubstr("0OFFLOAD0"));
  EXPECT_THAT(came->rows, Not(HasSubstr("1OFFLOAD")));
  EXPECT_THAT(outcome_.out, HasSubstr("offload=1 0"));
  EXPECT_THAT(outcome_.out, HasSubstr("host"));
  // Given again, the rows stay as they are.
  const std::string written = read("out/devices=2,microbatches=4/planned/plan.yaml");
  write("given/schedule.csv", came->rows);
  const auto again = given(written);
  ASSERT_TRUE(again) << outcome_.err;
  EXPECT_EQ(again->rows, came->rows);
  EXPECT_EQ(again->figures, came->figures);
}

// The last stage begins its backward as soon as its forward ends: nothing can leave in between.
TEST_F(GivenPlanKeys, SharesWithoutRoomForCopiesAreRefusedWithTheCure) {
  EXPECT_FALSE(given(with_line("offload: [1, 1]")));
  EXPECT_THAT(outcome_.err, HasSubstr("given/plan.yaml\": stage 1 cannot offload: no microbatch is "
                                      "away from it for as long as both copies take; write 0 for "
                                      "it in `offload`"));
  EXPECT_FALSE(given(with("prefetch: [1]", "prefetch: [0]")));
  EXPECT_THAT(outcome_.err,
              HasSubstr("its rows are not those of 1f1b, prefetch=0; correct `schedule` and "
                        "`placement`, or give the rows by themselves: plan: "
                        "{schedule: ..., cuts: [...]}"));
}

}  // namespace
}  // namespace pfeife
