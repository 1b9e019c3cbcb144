// Bytes kept by a layer, against the formulas of Korthikanti et al. 2023 (sec. 4, 5).
#include <gtest/gtest.h>

#include "planner/mesh/mesh_layers.h"

namespace pfeife {
namespace {

/// What the layers of one transformer layer keep from F to B, less the statistics of the two norms
/// (8 bytes a row each), which the formulas leave out.
std::int64_t kept(bool selective_and_sequence_parallel) {
  MeshRun run;
  Architecture& of = run.architecture;
  of.layers = 2, of.hidden = 1024, of.heads = of.kv_heads = 16, of.head_size = 64;
  of.feed_forward = 4096, of.vocabulary = 1024, of.sequence = 512, of.dropout = 0.1;
  run.mesh.size(Axis::Tensor) = 4;
  run.global_batch = run.microbatch_size = 2;
  run.sequence_parallel = selective_and_sequence_parallel;
  if (run.sequence_parallel) run.recomputation = Recompute::Attention;
  Network network;
  network.devices_per_host = 8, network.levels = {{8, {1e11}}};
  network.device.memory_bandwidth = {1e12};
  network.device.peak["fp16"] = {1e14}, network.device.peak["fp32"] = {1e13};
  const MeshLayers made = mesh_layers(run, network);
  const auto from = static_cast<std::size_t>(made.first[1]);
  // Layers of attention that are recomputed make again what they keep.
  std::int64_t bytes = 0;
  for (std::size_t l = from; l < from + 3; ++l)
    if (!run.sequence_parallel || l != from + 1) bytes += made.layers.layers[l].saved.value;
  for (const LayerStorage& storage : made.layers.storages) {
    bool here = false;
    for (const LayerId saver : storage.savers)
      here = here || (saver.index() >= from && saver.index() < from + 3 &&
                      !(run.sequence_parallel && saver.index() == from + 1 && !storage.value));
    if (here) bytes += storage.bytes.value;
  }
  const std::int64_t rows = 512 * 2 / (run.sequence_parallel ? 4 : 1);
  return bytes - 2 * 8 * rows;
}

TEST(KeptBytes, ALayerKeepsWhatTheFormulaSays) {
  const std::int64_t sbh = 512 * 2 * 1024;
  // s b h (10 + 24 / t + 5 a s / (h t))
  EXPECT_EQ(kept(false), sbh * 10 + sbh * 24 / 4 + sbh / 1024 * 5 * 16 * 512 / 4);
}

TEST(KeptBytes, WithSelectiveRecomputationAndSequenceParallelismALayerKeeps34Over) {
  EXPECT_EQ(kept(true), std::int64_t{512} * 2 * 1024 * 34 / 4);
}

}  // namespace
}  // namespace pfeife
