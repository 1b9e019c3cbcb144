// Layers with measured times in place of the roofline's. By hand, of Llama 3 8B with 4 layers.
#include "planner/mesh/measured_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/request/request.h"
#include "planner/mesh/activation_memory.h"
#include "planner/mesh/mesh_search.h"
#include "planner/mesh/repeat_layer.h"
#include "tests/mesh/configs.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

MeasuredLayer row(std::string kind, std::int64_t tp, int forward, int input, int weight) {
  return {.setting = {.kind = std::move(kind), .tp = tp, .sequence = 4096},
          .forward = milliseconds(forward),
          .input = milliseconds(input),
          .weight = milliseconds(weight)};
}

struct MeasuredPieces : ::testing::Test {
  MeasuredPieces() : network(read_network(kConfigs / "clusters/h100_sxm_hosts.yaml")) {
    run = usual_mesh().run;
    run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
    run.architecture.sequence = 4096, run.architecture.layers = 4;
    run.mesh.sizes = {1, 1, 2, 1};
    run.sequence_parallel = false, run.global_batch = 8;
    network.measured_layers.file = "layers.csv";
    network.measured_layers.rows = {
        row("embedding", 1, 1, 0, 2), row("attention+dense", 1, 10, 13, 7), row("head", 1, 5, 6, 4),
        row("embedding", 2, 1, 0, 1), row("attention+dense", 2, 6, 8, 4),   row("head", 2, 3, 4, 2),
    };
  }
  MeasuredLayer& measured(std::size_t number) { return network.measured_layers.rows[number]; }
  MeshRun run;
  Network network;
};

// Two stages of two layers: 1 + 2 x 10 and 2 x 10 + 5 ms forward, and so on.
TEST_F(MeasuredPieces, StagesTakeTheSumOfTheRows) {
  run.balanced = false;
  const MeshPrice price = price_mesh(run, network);
  const std::vector<StageCost>& stages = price.plan.costs.stages;
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].forward, milliseconds(21));
  EXPECT_EQ(stages[0].backward_input, milliseconds(26));
  EXPECT_EQ(stages[0].backward_weight, milliseconds(16));
  EXPECT_EQ(stages[1].forward, milliseconds(25));
  EXPECT_EQ(stages[1].backward_input, milliseconds(32));
  EXPECT_EQ(stages[1].backward_weight, milliseconds(18));
}

// On two ranks of tp the collectives come on top: those that the roofline's layers have.
TEST_F(MeasuredPieces, CollectivesStayModelled) {
  run.mesh.sizes = {2, 1, 1, 1};
  const Layers layers = rank_layers(run, network).layers;
  network.measured_layers = {};
  const Layers roofline = rank_layers(run, network).layers;
  EXPECT_EQ(layers.collectives, roofline.collectives);
  Nanoseconds forward{0}, input{0}, weight{0}, collectives{0};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerTimes& times = layers.layers[l].times.front();
    forward += times.forward - layers.collectives[l].forward;
    input += times.backward_input - layers.collectives[l].backward;
    weight += times.backward_weight;
    collectives += layers.collectives[l].forward;
  }
  EXPECT_EQ(forward, milliseconds(1 + 4 * 6 + 3));
  EXPECT_EQ(input, milliseconds(0 + 4 * 8 + 4));
  EXPECT_EQ(weight, milliseconds(1 + 4 * 4 + 2));
  EXPECT_GT(collectives, Nanoseconds{0});
}

// A whole layer that is recomputed takes its forward again: 10 ms of each of four, 8 microbatches.
TEST_F(MeasuredPieces, RecomputedLayersTakeTheirForwardAgain) {
  run.mesh.sizes = {1, 1, 1, 1};
  const Nanoseconds kept = price_mesh(run, network).plan.estimate;
  run.recomputation = Recompute::Full;
  EXPECT_EQ(price_mesh(run, network).plan.estimate - kept, milliseconds(8 * 40));
}

// Geometric: between 4 ms at 2,048 tokens and 16 ms at 8,192 stand 8 ms at 4,096.
TEST_F(MeasuredPieces, BetweenTwoRowsTimesAreInterpolatedInLogs) {
  std::vector<MeasuredLayer>& rows = network.measured_layers.rows;
  rows = {row("attention+dense", 1, 4, 10, 0), row("attention+dense", 1, 16, 40, 0)};
  rows[0].setting.sequence = 2048, rows[1].setting.sequence = 8192;
  LayerSetting wanted = rows[0].setting;
  wanted.sequence = 4096, wanted.precision = "bf16";
  const auto found = network.measured_layers.find(wanted);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->interpolated);
  EXPECT_EQ(found->layer.forward, milliseconds(8));
  EXPECT_EQ(found->layer.input, milliseconds(20));
  EXPECT_EQ(found->layer.weight, Nanoseconds{0});
  wanted.sequence = 16384;  // no neighbour above
  EXPECT_FALSE(network.measured_layers.find(wanted));
  wanted.sequence = 4096, wanted.tp = 2;  // two sizes differ
  EXPECT_FALSE(network.measured_layers.find(wanted));
  rows[1].setting.sequence = 16384;  // eight times apart
  wanted.tp = 1;
  EXPECT_FALSE(network.measured_layers.find(wanted));
}

TEST_F(MeasuredPieces, WhatIsInterpolatedIsCounted) {
  run.architecture.sequence = 8192;
  EXPECT_THAT(*missing_layers(run, network.measured_layers),
              HasSubstr("layers.csv has no times of embedding at tp 1, cp 1, ep 1, microbatch 1, "
                        "sequence 8192, recompute none, precision bf16; the nearest row has "
                        "sequence 4096"));
  std::vector<MeasuredLayer>& rows = network.measured_layers.rows;
  for (std::size_t i = 0; i < 3; ++i) {
    rows.push_back(rows[i]);
    rows.back().setting.sequence = i == 1 ? 16384 : 8192;
  }
  EXPECT_EQ(missing_layers(run, network.measured_layers), std::nullopt);
  EXPECT_EQ(coverage_text(run, network.measured_layers),
            "of a microbatch's 6 layers 2 with times as measured (layers.csv), 4 interpolated "
            "between measured ones; collectives modelled");
}

// tp 1 and 2 are measured, 4 and 8 are not.
TEST_F(MeasuredPieces, MeshesThatTheFileLacksAreLeftOut) {
  MeshQuestion question = usual_mesh();
  question.run = run, question.devices = 8;
  question.pp = {1}, question.cp = {1}, question.zero = {1}, question.microbatch_size = {1};
  question.recomputation = {Recompute::None}, question.stages_per_rank = {1};
  const MeshAnswer answer = find_mesh(question, network, {.all = true, .progress = {}});
  EXPECT_EQ(answer.candidates, 2U);
  EXPECT_EQ(answer.without_times, 2U);
  EXPECT_THAT(answer.missing_times, HasSubstr("embedding at tp 4"));
  for (const MeshOutcome& outcome : answer.priced)
    EXPECT_LE(outcome.run.mesh.size(Axis::Tensor), 2);
  question.tp = {8};
  EXPECT_THAT(message_of([&] { find_mesh(question, network); }),
              HasSubstr("no times of embedding at tp 8"));
}

TEST_F(MeasuredPieces, ALayerThatTheFileLacksIsNamed) {
  network.measured_layers.rows.erase(network.measured_layers.rows.begin() + 1);
  EXPECT_THAT(message_of([&] { rank_layers(run, network); }),
              HasSubstr("layers.csv has no times of attention+dense at tp 1, cp 1, ep 1"));
}

// 4096 x (2 x 4096 + 2 x 1024 + 3 x 14336) + 2 norms of 4096 = 218,112,000 parameters.
TEST_F(MeasuredPieces, RowsOfAnotherModelAreRefused) {
  constexpr std::int64_t kParameters = 218'112'000;
  for (const std::int64_t bytes : {2, 4}) {
    measured(1).parameters = Bytes{bytes * kParameters};
    EXPECT_EQ(message_of([&] { rank_layers(run, network); }), "");
  }
  measured(1).parameters = Bytes{3 * kParameters};
  EXPECT_THAT(message_of([&] { rank_layers(run, network); }), HasSubstr("another model"));
}

TEST_F(MeasuredPieces, MeasuredBytesReplaceTheFormulas) {
  for (const std::int64_t bytes : {std::int64_t{900'000'000}, std::int64_t{1'500'000'000}}) {
    measured(1).saved = Bytes{bytes};
    measured(1).temporary = Bytes{2 * bytes};
    const Layers layers = rank_layers(run, network).layers;
    const double saved = static_cast<double>(kept_bytes(layers, 1, 1 + kPiecesOfLayer).value);
    EXPECT_NEAR(saved, static_cast<double>(bytes), 100.0);
    EXPECT_EQ(temporary_bytes(layers, 4, 4 + kPiecesOfLayer), Bytes{2 * bytes});
  }
}

// The first and the last layer of a run in fp8 (current scaling), embedding and head are in 16
// bits.
TEST_F(MeasuredPieces, EndsOfARunInAFormatAreIn16Bits) {
  run.format = Format::Fp8;
  std::vector<MeasuredLayer>& rows = network.measured_layers.rows;
  for (MeasuredLayer& layer : rows) layer.setting.precision = "bf16";
  EXPECT_THAT(*missing_layers(run, network.measured_layers),
              HasSubstr("attention+dense at tp 1, cp 1, ep 1, microbatch 1, sequence 4096, "
                        "recompute none, precision fp8"));
  rows.push_back(row("attention+dense", 1, 4, 5, 3));
  rows.back().setting.precision = "fp8";
  run.mesh.sizes = {1, 1, 1, 1};
  Nanoseconds forward{0};
  for (const Layer& layer : rank_layers(run, network).layers.layers)
    forward += layer.times.front().forward;
  EXPECT_EQ(forward, milliseconds(1 + 2 * 10 + 2 * 4 + 5));
}

TEST_F(MeasuredPieces, KindsAreNamedByTheirParts) {
  using enum MixerKind;
  EXPECT_EQ(to_string(LayerKind{}), "attention+dense");
  EXPECT_EQ(to_string(LayerKind{
                .mixer = Attention, .feed_forward = FeedForwardKind::Experts, .window = 128}),
            "attention window 128+experts");
  EXPECT_EQ(to_string(LayerKind{.mixer = Mamba, .feed_forward = FeedForwardKind::None}), "mamba");
  EXPECT_EQ(to_string(LayerKind{.mixer = None}), "dense");
}

// Runs of SimuMax on a host of eight B200 (github.com/MooreThreads/SimuMax,
// docs/b200/b200_release_v1.2_summary.md at 4dcaae513b): Llama 3 70B cut to 12 layers, 4,096
// tokens, Megatron-LM's kernels, ZeRO 1, a microbatch of one sequence, 8 microbatches. GiB
// allocated.
struct PublishedPeak {
  std::int64_t tp, pp, dp;
  double gib;
};
constexpr std::array<PublishedPeak, 4> kPeaks = {
    {{1, 2, 4, 66.55}, {2, 1, 4, 60.68}, {4, 1, 2, 39.07}, {8, 1, 1, 28.29}}};

struct Residual : ::testing::Test {
  Residual()
      : network(read_network(std::filesystem::path(PFEIFE_SOURCE_DIR) /
                             "experiments/studies/published_runs/data/simumax_b200.yaml")) {
    run = usual_mesh().run;
    run.architecture = read_architecture(kConfigs / "architectures/llama3_70b.yaml");
    run.architecture.layers = 12, run.architecture.sequence = 4096;
    run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
    run.overlap_reductions = false, run.gradient_bytes = 4;
  }
  MeasuredPeak peak_of(const PublishedPeak& published) const {
    return {.bytes = Bytes{std::llround(published.gib * static_cast<double>(kGiB.value))},
            .tp = published.tp,
            .pp = published.pp,
            .dp = published.dp,
            .global_batch = 8 * published.dp,
            .zero = 1};
  }
  /// GiB, by the formula with activations so many times as large.
  double predicted(const PublishedPeak& published, double activation_factor) const {
    MeshRun as_measured = measured_run(peak_of(published), run);
    as_measured.activation_factor = activation_factor;
    const MeshPrice price = price_mesh(as_measured, network);
    return static_cast<double>(std::ranges::max(price.plan.peak_memory).value) /
           static_cast<double>(kGiB.value);
  }
  MeshRun run;
  Network network;
};

TEST_F(Residual, GivesTheMeasuredPeakOnItsOwnMesh) {
  for (const PublishedPeak& published : kPeaks) {
    const PeakResidual residual = peak_residual(peak_of(published), run, network);
    EXPECT_NEAR(predicted(published, residual.activation_factor), published.gib, 1e-5);
    EXPECT_NEAR(predicted(published, 1),
                static_cast<double>(residual.formula.value) / static_cast<double>(kGiB.value),
                1e-9);
  }
}

// The peak on tp 1 is the only one that is taken; what it says of the three others. SimuMax 1.2 has
// a mean error of 0.46 % on its own rows.
TEST_F(Residual, OfOneMeshPredictsTheOthers) {
  for (const RankKernels kernels : {RankKernels::Eager, RankKernels::Megatron}) {
    run.kernels = kernels;
    const PeakResidual residual = peak_residual(peak_of(kPeaks.front()), run, network);
    double alone = 0, with = 0;  // mean errors in per cent
    for (std::size_t i = 1; i < kPeaks.size(); ++i) {
      const auto error = [&](double activation_factor) {
        return std::abs(predicted(kPeaks[i], activation_factor) / kPeaks[i].gib - 1) * 100 / 3;
      };
      alone += error(1), with += error(residual.activation_factor);
    }
    EXPECT_LT(with, alone) << to_string(kernels);
    EXPECT_LT(with, 0.46) << to_string(kernels);
  }
}

TEST_F(Residual, OfAnImpossiblePeakIsRefused) {
  MeasuredPeak peak = peak_of(kPeaks.front());
  peak.bytes = Bytes{std::int64_t{20} << 30};
  EXPECT_THAT(message_of([&] { peak_residual(peak, run, network); }),
              HasSubstr("without any activations"));
  peak.tp = 3;
  EXPECT_THAT(message_of([&] { peak_residual(peak, run, network); }),
              HasSubstr("model.measured_peak of 20.00 GiB: tp 3 does not divide"));
}

}  // namespace
}  // namespace pfeife
