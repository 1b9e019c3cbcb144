// Several hosts on one machine: network namespaces with a cable between them, each rank in one.
// Skipped without the right to make them.
#include <gmock/gmock.h>

#include <cmath>
#include <regex>

#include "planner/io/files/atomic_file.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using namespace testing;

class Hosts : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    made_ = sh("ip netns add " + name(0)) && sh("ip netns add " + name(1)) &&
            sh("ip link add e0 netns " + name(0) + " type veth peer name e1 netns " + name(1));
    for (int h = 0; made_ && h < 2; ++h)
      made_ = sh(stream_all("ip -n ", name(h), " addr add 10.77.0.", h + 1, "/24 dev e", h)) &&
              sh("ip -n " + name(h) + " link set lo up") &&
              sh(stream_all("ip -n ", name(h), " link set e", h, " up"));
    if (!made_) GTEST_SKIP() << "no right to make network namespaces, or no `ip`";
    // A rank each; two messages of a step never meet on the cable.
    std::ofstream(folder_ / "s.csv") << "0F0,0B0\n1F0,1B0\n";
  }
  void TearDown() override {
    for (int h = 0; h < 2; ++h) sh("ip netns del " + name(h));
    ProcessTest::TearDown();
  }
  static bool sh(const std::string& command) {
    return std::system((command + " 2>/dev/null").c_str()) == 0;
  }
  static std::string name(int host) { return stream_all("pfeife", getpid(), "h", host); }

  /// A tiny GPT on both; rank 1's command begins with `before`.
  Ended run(const std::vector<std::string>& rest, const std::vector<std::string>& before = {}) {
    std::vector<std::unique_ptr<Started>> started;
    for (int r = 0; r < 2; ++r) {
      std::vector<std::string> program{"/usr/bin/env", "ip", "netns", "exec", name(r)};
      if (r == 1) program.insert(program.end(), before.begin(), before.end());
      program.push_back(PFEIFE_RUN);
      program.insert(program.end(), rest.begin(), rest.end());
      for (const std::string& more :
           {std::string("--model"), model_path("tiny_gpt").string(), std::string("--cuts"),
            std::string("30"), std::string("--schedule"), (folder_ / "s.csv").string(),
            std::string("--microbatch-size"), std::string("64")})
        program.push_back(more);
      started.push_back(start(program,
                              {{"RANK", std::to_string(r)},
                               {"WORLD_SIZE", "2"},
                               {"LOCAL_RANK", "0"},
                               {"MASTER_ADDR", "10.77.0.1"},
                               {"MASTER_PORT", "29500"}},
                              "rank" + std::to_string(r)));
    }
    const Ended other = started[1]->wait(kLong), ended = started[0]->wait(kSoon);
    EXPECT_EQ(other.code, ended.code) << other.text;
    return ended;
  }

 private:
  bool made_ = false;
};

TEST_F(Hosts, HaveTheGradientsOfTheUnsplitModel) {
  const Ended ended = run({"check"});
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
}

// The kernel moves rank 1's clock by a thousand seconds exactly: order and times are right all the
// same, and what is said of the clock is within the error that is said.
TEST_F(Hosts, MayHaveClocksThatDiffer) {
  const std::vector<std::string> moved{"unshare", "--time", "--monotonic", "1000"};
  if (!sh("unshare --time --monotonic 1000 true")) GTEST_SKIP() << "no clocks of one's own here";
  EXPECT_EQ(run({"check"}, moved).code, 0);  // which looks at the order, too
  const Ended ended = run({"train", "--steps", "12"}, moved);
  EXPECT_EQ(ended.code, 0) << ended.text;
  const std::regex line(
      "clock of rank 1: ([0-9.]+) s ahead of rank 0's, known to within ([0-9.]+) us");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(ended.text, found, line)) << ended.text;
  const double ahead = std::stod(found[1]), error = std::stod(found[2]) * 1e-6;
  EXPECT_LE(std::abs(ahead - 1000), error + 1e-5);  // printed to 10 us
  std::cout << found[0] << "\n";
}

// A bucket of tokens makes the cable 100 Mbit/s. What a cluster file says of such a cable: bytes
// over bandwidth, of which frames of 1514 bytes carry 1448.
TEST_F(Hosts, TransfersTakeWhatTheClusterFileSays) {
  for (int h = 0; h < 2; ++h)
    if (!sh(stream_all("ip netns exec ", name(h), " tc qdisc add dev e", h,
                       " root tbf rate 100mbit burst 5kb latency 400ms")))
      GTEST_SKIP() << "no tc, or no tbf in the kernel";
  const std::string out = folder_ / "m.csv";
  const Ended ended = run({"train", "--steps", "12", "--out", out});
  ASSERT_EQ(ended.code, 0) << ended.text;
  const Model model("tiny_gpt");
  const GraphSplit split =
      split_graph(model.graph, effects_of(model.graph), std::vector<NodeId>{NodeId{30}});
  double bytes = 0;
  for (const Crossing& crossing : split.crossings)
    bytes += static_cast<double>(model.graph.value(crossing.value).type.bytes().value);
  bytes *= 64.0 / static_cast<double>(model.graph.microbatch_size);
  const double predicted = bytes * 8 / 100e6 * 1514 / 1448;
  std::smatch found;
  const std::string text = read_file(out);
  ASSERT_TRUE(std::regex_search(text, found, std::regex("SEND_F0,[0-9]+,[0-9]+,([0-9]+)"))) << text;
  const double measured = std::stod(found[1]) * 1e-9;
  std::cout << bytes << " bytes: measured " << measured * 1e3 << " ms, by the cluster file "
            << predicted * 1e3 << " ms (" << (measured / predicted - 1) * 100 << " %)\n";
  RecordProperty("percent_off", static_cast<int>((measured / predicted - 1) * 100));
  EXPECT_GT(measured, predicted / 2);  // a bucket can only slow it down
}

}  // namespace
}  // namespace pfeife
