#include "experiments/studies/shared_head/shapes.h"

namespace pfeife::shared_head {

MeshRun mesh_run(const PublishedStages& measured) {
  MeshRun run;
  Architecture& gpt = run.architecture;
  gpt.name = "gpt";
  gpt.layers = 32, gpt.hidden = 3072, gpt.heads = gpt.kv_heads = 24, gpt.head_size = 128;
  gpt.feed_forward = 4 * gpt.hidden;
  gpt.vocabulary = static_cast<std::int64_t>(measured.vocabulary);
  gpt.sequence = static_cast<std::int64_t>(measured.sequence);
  gpt.attention = AttentionKind::Fused;
  gpt.tied_embedding = false;
  run.mesh.size(Axis::Pipeline) = static_cast<std::int64_t>(measured.ranks());
  run.global_batch = static_cast<std::int64_t>(measured.microbatches);
  run.schedule = measured.family();
  run.balanced = measured.method == "redistributed";
  run.kernels = RankKernels::Megatron;
  return run;
}

MeshPrice from_shapes(const PublishedStages& run, const Network& network) {
  return price_mesh(mesh_run(run), network);
}

}  // namespace pfeife::shared_head
