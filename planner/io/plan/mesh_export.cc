#include "planner/io/plan/mesh_export.h"

#include <vector>

namespace pfeife {
namespace {

std::string assigned(const std::string& key, std::int64_t value) {
  return key + " = " + std::to_string(value) + "\n";
}

/// torchtitan divides the replicas into those that hold all (replicate) and those that divide
/// parameters, gradients and state (shard).
std::string replicas(const MeshRun& run) {
  const std::int64_t dp = run.mesh.size(Axis::Data);
  const bool shards = run.zero > 0;
  std::string text = assigned("data_parallel_replicate_degree", shards ? 1 : dp) +
                     assigned("data_parallel_shard_degree", shards ? dp : 1);
  if (run.zero > 2) text += "fsdp_reshard_after_forward = \"always\"\n";
  if (shards && run.zero < 3)
    text += "fsdp_reshard_after_forward = \"never\"  # the plan divides " +
            std::string(run.zero > 1 ? "gradients and " : "") + "optimizer state (ZeRO " +
            std::to_string(run.zero) + "); FSDP divides parameters, too\n";
  return text;
}

std::string schedule_name(const MeshRun& run) {
  return run.stages_per_rank > 1 ? "Interleaved1F1B" : "1F1B";
}

}  // namespace

std::string torchtitan_toml(const MeshRun& run) {
  const auto size = [&](Axis axis) { return run.mesh.size(axis); };
  std::string text = "[parallelism]\n" + replicas(run) +
                     assigned("tensor_parallel_degree", size(Axis::Tensor)) +
                     assigned("context_parallel_degree", size(Axis::Context)) +
                     assigned("pipeline_parallel_degree", size(Axis::Pipeline));
  if (run.mesh.experts > 1) text += assigned("expert_parallel_degree", run.mesh.experts);
  if (size(Axis::Pipeline) > 1)
    text += "pipeline_parallel_schedule = \"" + schedule_name(run) + "\"\n" +
            assigned("pipeline_parallel_microbatch_size", run.microbatch_size);
  text +=
      "\n[training]\n" +
      assigned("local_batch_size", size(Axis::Pipeline) > 1 ? run.global_batch / size(Axis::Data)
                                                            : run.microbatch_size) +
      assigned("global_batch_size", run.global_batch) +
      assigned("seq_len", run.architecture.sequence);
  const char* mode = run.recomputation == Recompute::Full ? "\"full\""
                     : run.recomputation == Recompute::Attention
                         ? "\"selective\"  # the plan recomputes attention alone"
                         : "\"none\"";
  return text + "\n[activation_checkpoint]\nmode = " + mode + "\n";
}

std::string megatron_flags(const MeshRun& run) {
  std::vector<std::string> flags;
  const auto number = [&](const std::string& flag, std::int64_t value) {
    flags.push_back(flag + " " + std::to_string(value));
  };
  number("--tensor-model-parallel-size", run.mesh.size(Axis::Tensor));
  if (run.mesh.size(Axis::Context) > 1)
    number("--context-parallel-size", run.mesh.size(Axis::Context));
  number("--pipeline-model-parallel-size", run.mesh.size(Axis::Pipeline));
  if (run.stages_per_rank > 1)
    number("--num-virtual-stages-per-pipeline-rank", run.stages_per_rank);
  if (run.mesh.experts > 1) number("--expert-model-parallel-size", run.mesh.experts);
  if (run.sequence_parallel) flags.emplace_back("--sequence-parallel");
  if (!run.scatter_gather) flags.emplace_back("--no-scatter-gather-tensors-in-pipeline");
  if (run.zero > 0) flags.emplace_back("--use-distributed-optimizer");
  if (run.overlap_reductions && run.mesh.size(Axis::Data) > 1)
    flags.emplace_back("--overlap-grad-reduce");
  if (run.zero > 2)
    flags.insert(flags.end(),
                 {"--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params"});
  number("--micro-batch-size", run.microbatch_size);
  number("--global-batch-size", run.global_batch);
  number("--seq-length", run.architecture.sequence);
  flags.emplace_back(run.type == DType::BFloat16 ? "--bf16" : "--fp16");
  if (run.recomputation == Recompute::Full)
    flags.insert(flags.end(), {"--recompute-granularity full", "--recompute-method uniform",
                               "--recompute-num-layers 1"});
  if (run.recomputation == Recompute::Attention)
    flags.emplace_back("--recompute-granularity selective");
  std::string text;
  for (const std::string& flag : flags) text += (text.empty() ? "" : " \\\n") + flag;
  return text + "\n";
}

}  // namespace pfeife
