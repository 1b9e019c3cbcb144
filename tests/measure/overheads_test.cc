// What a profile says of stages and messages reaches the costs that every engine and the search
// read.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "planner/cost/stages/stage_costs.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {
namespace {

constexpr Nanoseconds us(std::int64_t count) { return Nanoseconds{1000 * count}; }

class StageOverheadsOfAProfile : public ::testing::Test {
 protected:
  StageOverheadsOfAProfile() {
    profile_.graph_digest = graph_.digest;
    profile_.device_kind = "core";
    profile_.training = {Precision::Fp32, Optimizer::Adam, graph_.microbatch_size};
    profile_.source = FigureSource::Measured;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      profile_.nodes.push_back({us(11 + 7 * static_cast<std::int64_t>(n)), us(19), us(13)});
    profile_.parameters.resize(graph_.parameters.size());
  }
  ~StageOverheadsOfAProfile() override { std::filesystem::remove(file_); }

  /// All stages' F, I and W together, the model cut behind so many layers.
  StageCost sum(std::size_t stages, const std::optional<StageOverheads>& overheads) {
    profile_.stage_overheads = overheads;
    write_file(file_, profile_text(profile_, graph_));
    const ModelFiles files{.file = model_, .profile = file_};
    const Layers layers = read_layers(files, cluster_);
    Partition partition;
    for (std::size_t l = 0; partition.stages() < stages; ++l)
      if (layers.layers[l].no_cut_after.empty())
        partition.cuts.push_back(static_cast<std::int32_t>(l));
    StageCost all;
    for (const StageCost& stage : stage_costs(layers, partition, round_robin(stages, 2),
                                              with_measured_overheads(cluster_, files))
                                      .stages) {
      all.forward += stage.forward, all.backward_input += stage.backward_input;
      all.backward_weight += stage.backward_weight;
    }
    return all;
  }

  const std::filesystem::path model_ = PFEIFE_SOURCE_DIR "/configs/models/tiny_mlp.pt2";
  const Graph graph_ = read_pt2(model_);
  Profile profile_;
  const std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                      ("pfeife_overheads_" + std::to_string(::getpid()) + ".yaml");
  const Cluster cluster_ = uniform_cluster(
      2, {.name = "core", .type = DeviceType::Cpu, .memory = 4 * kGiB, .stage_overhead = us(7)},
      {1e9}, us(5));
};

// By hand: 30 + 50 + 4 us a microbatch and stage are 42 us for F and 42 us for B or I. The nodes
// were measured in one stage, so that one stage takes what they add up to and each further one as
// much more; the 7 us that the cluster's file gives each stage are not in them.
TEST_F(StageOverheadsOfAProfile, LengthenFAndBOfEveryFurtherStageByHalfOfTheirSum) {
  Nanoseconds forward{0}, input{0}, weight{0};
  for (const NodeProfile& node : profile_.nodes)
    forward += node.forward, input += node.backward_input, weight += node.backward_weight;
  for (const std::int64_t stages : {1, 2, 4}) {
    const auto count = static_cast<std::size_t>(stages);
    const StageCost without = sum(count, std::nullopt),
                    with = sum(count, StageOverheads{us(30), us(50), us(4)});
    EXPECT_EQ(without.forward, forward + stages * us(7));
    EXPECT_EQ(with.forward, forward + stages * us(7) + (stages - 1) * us(42));
    EXPECT_EQ(with.backward_input, input + stages * us(7) + (stages - 1) * us(42));
    EXPECT_EQ(with.backward_weight, weight);
  }
}

// A message between ranks takes as much more as the profile says, once: 5 us, the bytes at 1 GB/s
// and 40 us. Between stages of one rank there is none.
TEST_F(StageOverheadsOfAProfile, AMessageTakesItsOverheadBeyondTheLink) {
  const auto messages = [&](const std::optional<Nanoseconds>& overhead) {
    profile_.message_overhead = overhead;
    write_file(file_, profile_text(profile_, graph_));
    const ModelFiles files{.file = model_, .profile = file_};
    EXPECT_EQ(message_overhead(files), overhead.value_or(us(0)));
    const Layers layers = read_layers(files, cluster_);
    Partition partition;
    for (std::size_t l = 0; partition.stages() < 4; ++l)
      if (layers.layers[l].no_cut_after.empty())
        partition.cuts.push_back(static_cast<std::int32_t>(l));
    return stage_costs(layers, partition, v_shape(2), with_measured_overheads(cluster_, files))
        .pairs;
  };
  const auto without = messages({}), with = messages(us(40));
  std::size_t between = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    const bool there = without[i].forward_time > us(0);
    between += there;
    EXPECT_EQ(with[i].forward_time, without[i].forward_time + us(there ? 40 : 0));
    EXPECT_EQ(with[i].backward_time, without[i].backward_time + us(there ? 40 : 0));
    if (there) {
      EXPECT_EQ(with[i].forward_time, us(45) + Nanoseconds{with[i].bytes.value});
    }
  }
  EXPECT_GE(between, 2u);
  EXPECT_LT(between, with.size()) << "stages 1 and 2 are on one rank";
}

// A pass that is shorter than its overhead leaves the rest to the next one.
TEST_F(StageOverheadsOfAProfile, LeaveOneStageAsItWasMeasured) {
  for (NodeProfile& node : profile_.nodes) node.forward = us(1);
  const auto nodes = static_cast<std::int64_t>(graph_.nodes.size());
  const StageCost without = sum(1, std::nullopt),
                  with = sum(1, StageOverheads{us(2 * nodes), us(2 * nodes), us(0)});
  EXPECT_EQ(with.forward, us(7 + 2 * nodes));
  EXPECT_EQ(with.forward + with.backward_input, without.forward + without.backward_input);
}

}  // namespace
}  // namespace pfeife
