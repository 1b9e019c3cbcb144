// What a mesh reserves, and what it may.
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/request/request.h"
#include "planner/mesh/mesh_search.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

struct ReservedByMeshes : ::testing::Test {
  ReservedByMeshes() {
    question.run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
    network = read_network(kConfigs / "clusters/a100_sxm4_80gb_hosts.yaml");  // 80 GiB, reserve 2
  }
  MeshQuestion question = usual_mesh();
  Network network;
};

TEST_F(ReservedByMeshes, IsAFactorOfWhatIsAllocated) {
  MeshRun run = question.run;
  EXPECT_EQ(reserved_by(run, AllocatorSettings{}, Bytes{1'000'000}), Bytes{1'050'000});
  EXPECT_EQ(reserved_by(run, AllocatorSettings{.expandable_segments = true}, Bytes{1'000'000}),
            Bytes{1'020'000});
  EXPECT_EQ(reserved_by(run, std::nullopt, Bytes{1'000'000}), Bytes{1'000'000});
  run.stages_per_rank = 2, run.recomputation = Recompute::Full;
  EXPECT_EQ(reserved_by(run, AllocatorSettings{}, Bytes{1'000'000}), Bytes{1'150'000});
}

// 78 GiB less a fiftieth; with communicators of four axes 1 + 4 x 0.6 GiB are outside, not 2.
TEST_F(ReservedByMeshes, LeavesRoomForContextAndCommunicators) {
  MeshRun run = question.run;
  const auto limit = [&] {
    return static_cast<double>(reserved_limit(question, run, network).value) /
           static_cast<double>(kGiB.value);
  };
  EXPECT_NEAR(limit(), 0.98 * 78, 1e-6);
  run.mesh.sizes = {2, 2, 2, 2};
  EXPECT_NEAR(limit(), 0.98 * (80 - 3.4), 1e-6);
  question.memory_margin = 0;
  EXPECT_NEAR(limit(), 80 - 3.4, 1e-6);
}

// What is then planned for may reserve as much as what was searched for.
TEST_F(ReservedByMeshes, IsLimitedAsThePipelineOfTheMesh) {
  MeshRun run = question.run;
  run.mesh.sizes = {2, 2, 2, 2};
  const DeviceKind& device = pipeline_cluster(run, network).kinds.front();
  const double usable = static_cast<double>((device.memory - device.reserve).value);
  EXPECT_EQ(reserved_limit(question, run, network).value, static_cast<std::int64_t>(0.98 * usable));
  question.reserve = Bytes{std::int64_t{10} << 30};
  question.allocator.reset();
  EXPECT_EQ(reserved_limit(question, run, network), Bytes{std::int64_t{70} << 30});
}

// Llama 3 8B: 8,030,261,248 parameters of 18 bytes.
TEST_F(ReservedByMeshes, StatesAreThoseOfTheWholeModel) {
  question.run.mesh.sizes = {4, 1, 2, 1};
  EXPECT_EQ(undivided_state(question.run, network), Bytes{18 * std::int64_t{8'030'261'248}});
}

TEST_F(ReservedByMeshes, DecidesWhatFits) {
  question.devices = 4;
  question.run.global_batch = 16;
  const MeshAnswer answer =
      find_mesh(question, network, {.threads = 1, .all = true, .progress = {}});
  bool some = false, others = false;
  for (const MeshOutcome& one : answer.priced) {
    EXPECT_EQ(one.fits, one.reserved <= one.limit);
    EXPECT_EQ(one.reserved, reserved_by(one.run, AllocatorSettings{}, one.peak));
    some |= one.fits, others |= !one.fits;
  }
  EXPECT_TRUE(some && others);
}

}  // namespace
}  // namespace pfeife
