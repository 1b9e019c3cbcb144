#include "planner/io/traces/profile_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>

#include "planner/io/results/chrome_trace.h"
#include "planner/io/traces/profiler_events.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

class ProfileReader : public ::testing::Test {
 protected:
  ProfileReader()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("profile_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~ProfileReader() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  /// As torch.profiler writes it: `events` in the order of the file.
  std::filesystem::path torch(const std::string& events) const {
    return write("rank1.json", R"({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", )"
                               R"("rank": 1, "pg_config": [{"rank": 7}]}, )"
                               R"("baseTimeNanoseconds": 1790857026000000000, "traceEvents": [)" +
                                   events + R"(], "traceName": "x"})");
  }
  static std::string range(const std::string& name, const std::string& start,
                           const std::string& length,
                           const std::string& category = "user_annotation", int thread = 7) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
           R"(", "pid": 7, "tid": )" + std::to_string(thread) + R"(, "ts": )" + start +
           R"(, "dur": )" + length + R"(, "args": {"External id": 3, "name": "no"}})";
  }
  static std::string refusal(const std::filesystem::path& file) {
    const std::string said = message_of<ConfigError>([&] { read_profile(file, 0); });
    return said.starts_with(file.string()) ? said.substr(file.parent_path().string().size() + 1)
                                           : said;
  }

  std::filesystem::path folder_;
};

constexpr ns kBase{1790857026000000000};

// The range waits for its input until 125.5; its operators run from 125.5 to 140 and from 150.25
// to 160; the first calls another.
TEST_F(ProfileReader, AnActionLastsFromItsFirstOperatorToItsLast) {
  const auto ranks =
      read_profile(torch(range("PP:1F0", "4651776373100.000", "70.000") + "," +
                         range("gloo:recv", "4651776373101", "24") + "," +
                         range("c10d::recv_", "4651776373101", "3", "cpu_op") + "," +
                         range("aten::linear", "4651776373125.500", "14.5", "cpu_op") + "," +
                         range("aten::addmm", "4651776373126.000", "5", "cpu_op") + "," +
                         range("aten::gelu", "4651776373150.250", "9.750", "cpu_op") + "," +
                         range("PP:1SEND_F0", "4651776373170.001", "3") + "," +
                         range("ProfilerStep#3", "4651776373000", "999")),
                   5);
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, RankId{1});
  EXPECT_EQ(ranks[0].clock, 5U);
  ASSERT_EQ(ranks[0].actions.size(), 2U);
  const ObservedAction& forward = ranks[0].actions[0];
  EXPECT_EQ(to_string(forward.cell), "1F0");
  EXPECT_EQ(forward.start - kBase, ns{4651776373125500});
  EXPECT_EQ(forward.end - kBase, ns{4651776373160000});
  EXPECT_EQ(forward.busy, ns{14500 + 9750});
  EXPECT_EQ(ranks[0].actions[1].start - kBase, ns{4651776373170001});
}

TEST_F(ProfileReader, KnowsTheNamesOfTorchsSchedulesAndOfAnyLoop) {
  const auto ranks = read_profile(
      torch(range("Forward 3", "10", "1") + "," + range("Backward 0", "20", "1") + "," +
            range("2I1", "30", "1") + "," + range("PP:(0F4;3B0)OVERLAP_F_B", "40", "1") + "," +
            range("Optimizer.step#Adam.step", "50", "1") + "," + range("PP:1UNSHARD", "60", "1") +
            "," + range("PP:1RECV_F0", "60", "1") + "," + range("Forward pass", "70", "1") + "," +
            R"({"ph": "B", "name": "2W1", "pid": 7, "tid": 7, "ts": 80},)"
            R"({"ph": "E", "pid": 7, "tid": 7, "ts": 81.5})"),
      0);
  std::vector<std::string> names;
  for (const ObservedAction& action : ranks[0].actions) names.push_back(to_string(action.cell));
  EXPECT_THAT(names, ::testing::ElementsAre("-1F3", "-1B0", "2I1", "(0F4;3B0)OVERLAP_F_B",
                                            "-1OPTIMIZER_STEP", "2W1"));
  EXPECT_EQ(ranks[0].actions.back().end - ranks[0].actions.back().start, ns{1500});
}

// torch leaves out what the first stage would compute for its inputs; its range waits all the same.
TEST_F(ProfileReader, AnActionWithoutOperatorsEndsWithItsRange) {
  const auto ranks = read_profile(
      torch(range("PP:0I0", "10", "5") + "," + range("aten::mm", "20", "1", "cpu_op")), 0);
  EXPECT_EQ(ranks[0].actions[0].start - kBase, ns{15000});
  EXPECT_EQ(ranks[0].actions[0].end - kBase, ns{15000});
}

// On a GPU the host's range says when kernels were launched, the device's when they ran; the range
// is shown on the stream of the communication, too.
TEST_F(ProfileReader, OnADeviceAnActionIsWhereItsKernelsCompute) {
  const auto ranks =
      read_profile(torch(range("0F0", "10", "5") + "," + range("aten::mm", "11", "1", "cpu_op") +
                         "," + range("0F0", "100", "50", "gpu_user_annotation", 7) + "," +
                         range("0F0", "90", "60", "gpu_user_annotation", 20) + "," +
                         range("gemm", "105", "10", "kernel", 7) + "," +
                         range("gemm", "120", "30", "kernel", 7) + "," +
                         range("ncclDevKernel_SendRecv(x)", "90", "60", "kernel", 20)),
                   0);
  ASSERT_EQ(ranks[0].actions.size(), 1U);
  EXPECT_EQ(ranks[0].actions[0].start - kBase, ns{105000});
  EXPECT_EQ(ranks[0].actions[0].end - kBase, ns{150000});
  EXPECT_EQ(ranks[0].actions[0].busy, ns{40000});
}

TEST_F(ProfileReader, ReadsGzipAndNoticesWhereItIsCut) {
  const std::string text =
      R"({"distributedInfo": {"rank": 0}, "traceEvents": [)" + range("0F0", "10", "1") + "]}";
  const auto file = folder_ / "rank0.json.gz";
  gzFile packed = gzopen(file.c_str(), "wb");
  gzwrite(packed, text.data(), static_cast<unsigned>(text.size()));
  gzclose(packed);
  EXPECT_EQ(read_profile(file, 0)[0].actions.size(), 1U);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 12);
  EXPECT_MESSAGE(refusal(file));
}

TEST_F(ProfileReader, ReadsWhatPfeifeWroteOfARun) {
  Trace trace{TraceSource::Measured, 2, {}, {}};
  trace.events.push_back({.rank = RankId{0},
                          .peer = RankId{0},
                          .cell = forward(StageId{0}, MicrobatchId{0}),
                          .start = ns{5},
                          .end = ns{1'234'567}});
  trace.events.push_back({.kind = TaskKind::Transfer,
                          .rank = RankId{0},
                          .peer = RankId{1},
                          .cell = send(StageId{0}, StageId{1}, MicrobatchId{0}, Direction::Forward),
                          .start = ns{1'234'567},
                          .end = ns{1'234'600}});
  trace.events.push_back({.rank = RankId{1},
                          .peer = RankId{1},
                          .cell = forward(StageId{1}, MicrobatchId{0}),
                          .start = ns{1'234'600},
                          .end = ns{2'000'000}});
  Trace estimated = trace;
  estimated.source = TraceSource::Estimated;
  std::ofstream out(folder_ / "trace.json");
  write_chrome_trace(out, std::vector{estimated, trace}, "both");
  out.close();
  const auto ranks = read_profile(folder_ / "trace.json", 2);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[1].rank, RankId{1});
  EXPECT_EQ(ranks[1].clock, 2U);
  ASSERT_EQ(ranks[0].actions.size(), 2U);
  EXPECT_TRUE(ranks[0].actions[1].arrives);
  EXPECT_EQ(ranks[0].actions[1].end - ranks[0].actions[0].start, ns{1'234'595});
}

TEST_F(ProfileReader, SaysWhatIsWrongWithAFile) {
  EXPECT_MESSAGE(refusal(folder_ / "nothing.json"));
  ASSERT_EQ(mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  EXPECT_MESSAGE(refusal(folder_ / "pipe.json"));  // which nobody may ever write to
  EXPECT_MESSAGE(refusal(torch(range(std::string(std::size_t{3} << 20, 'x'), "1", "2"))));
  EXPECT_MESSAGE(refusal(write("a.json", "")));
  EXPECT_MESSAGE(refusal(write("a.json", R"({"traceEvents": [{"ph": "X", "na)")));
  EXPECT_MESSAGE(refusal(write("a.json", "name,forward_ms\n")));
  EXPECT_MESSAGE(refusal(write("a.json", R"({"traceEvents": []})")));
  EXPECT_MESSAGE(refusal(write("a.json", R"({"traceEvents": [{"ph": "M"}]})")));
  EXPECT_MESSAGE(refusal(write("rank.json", R"([{"ph": "M"}])")));
  EXPECT_MESSAGE(refusal(torch(range("aten::mm", "10", "1", "cpu_op"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "10", "-1"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "1e30", "1"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "10", "1e15"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "3900000000000000.000", "1"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "99999999999999999999", "1"))));
  EXPECT_MESSAGE(refusal(torch(range("0F0", "10", "1") + "," + range("k", "10", "1", "kernel"))));
  EXPECT_MESSAGE(refusal(write("a.json", std::string(100, '['))));
}

// Before torch 2.4 times counted from 1970.
// Five million of them in a packed file of a third of a megabyte took two gigabytes.
TEST_F(ProfileReader, RangesThatDoNotEndAreLimited) {
  const auto begins = [&](int count) {
    std::string events;
    for (int k = 0; k < count; ++k)
      events += R"({"ph": "B", "name": "x", "pid": 7, "tid": 7, "ts": 1},)";
    return torch(events + range("0F0", "2", "1"));
  };
  EXPECT_EQ(read_profile(begins(10'000), 0).size(), 1U);
  EXPECT_MESSAGE(refusal(begins(10'001)));
}

TEST_F(ProfileReader, ActionsOfPfeifeHaveShortNames) {
  const std::string parts = std::string(60, '(') + std::string(200, '0');
  EXPECT_MESSAGE(refusal(write(
      "rank0.json", R"({"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, )"
                    R"("dur": 1, "args": {"action": ")" +
                        parts + R"("}}]})")));
}

TEST_F(ProfileReader, TimesSince1970AreExact) {
  const auto ranks =
      read_profile(write("rank0.json",
                         R"({"traceEvents": [)" + range("0F0", "1700000000123456.789", "1") + "]}"),
                   0);
  EXPECT_EQ(ranks[0].actions[0].start, ns{1700000000123456789});
}

TEST(BusyTimes, AreCoveredOnceWhateverTheOrder) {
  BusyTimes busy;
  for (const auto& [start, end] : {std::pair{50, 60}, {10, 20}, {15, 30}, {12, 13}, {58, 70}})
    busy.add({ns{start}, ns{end}});
  const auto covered = busy.within({ns{0}, ns{65}});
  ASSERT_TRUE(covered);
  EXPECT_EQ(covered->span.start, ns{10});
  EXPECT_EQ(covered->span.end, ns{65});
  EXPECT_EQ(covered->busy, ns{20 + 15});
  EXPECT_FALSE(busy.within({ns{30}, ns{50}}));
}

}  // namespace
}  // namespace pfeife
