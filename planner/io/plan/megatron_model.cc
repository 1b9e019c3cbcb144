// The model as flags of Megatron-LM's pretrain_gpt.py (Megatron Core 0.16 to 0.20), and reasons
// for which that program has no such model. Tokens are made up (--mock-data).
#include <algorithm>

#include "planner/io/plan/plan_writers.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

struct Flags {
  std::vector<std::string> flags;
  void add(const std::string& flag) { flags.push_back(flag); }
  void add(const std::string& flag, std::int64_t value) { add(flag + " " + std::to_string(value)); }
};

void add_attention(const Architecture& model, Flags& flags) {
  flags.add("--num-attention-heads", model.heads);
  if (const auto& latent = model.latent) {
    flags.add("--multi-latent-attention");
    flags.add("--q-lora-rank", latent->query_rank);
    flags.add("--kv-lora-rank", latent->key_value_rank);
    flags.add("--qk-head-dim", model.head_size);
    flags.add("--qk-pos-emb-head-dim", latent->rotary_size);
    flags.add("--v-head-dim", latent->value_size);
  } else {
    if (model.kv_heads != model.heads) {
      flags.add("--group-query-attention");
      flags.add("--num-query-groups", model.kv_heads);
    }
    flags.add("--kv-channels", model.head_size);
  }
  // Compressed queries and keys have norms in every model that has them.
  if (model.latent || model.query_key_norm == QueryKeyNorm::Head) flags.add("--qk-layernorm");
  if (model.attention == AttentionKind::Plain) flags.add("--attention-backend unfused");
}

void add_experts(const MeshRun& run, Flags& flags) {
  const Architecture& model = run.architecture;
  flags.add("--num-experts", model.experts);
  flags.add("--moe-router-topk", model.top_k);
  if (model.top_k == 1) flags.add("--moe-router-pre-softmax");
  flags.add("--moe-ffn-hidden-size", model.feed_forward);
  if (shared_width(model) > 0)
    flags.add("--moe-shared-expert-intermediate-size", shared_width(model));
  if (model.dense_layers > 0)
    flags.add("--moe-layer-freq '([0]*" + std::to_string(model.dense_layers) + "+[1]*" +
              std::to_string(model.layers - model.dense_layers) + ")'");
  if (!run.separate_experts) flags.add("--moe-grouped-gemm");
  flags.add("--moe-router-load-balancing-type aux_loss");
  flags.add("--moe-aux-loss-coeff 0.01");
  if (run.once_a_host)
    flags.add("--moe-token-dispatcher-type flex --moe-enable-deepep");
  else
    flags.add("--moe-token-dispatcher-type alltoall");
}

void add_biases(const Biases& bias, Flags& flags) {
  if (bias.feed_forward) return;
  flags.add("--disable-bias-linear");
  if (bias.query_key_value) flags.add("--add-qkv-bias");
}

std::string position_of(PositionKind kind) {
  switch (kind) {
    case PositionKind::Learned:
      return "learned_absolute";
    case PositionKind::Rotary:
      return "rope";
    case PositionKind::None:
      return "none";
  }
  return "";
}

}  // namespace

void refuse_unlike_layers(const Architecture& model, const std::string& title,
                          std::vector<std::string>& refused) {
  if (model.mamba)
    refused.push_back("Mamba layers: " + title + "'s model of this export has attention alone");
  else if (!model.pattern.empty())
    refused.push_back("layers of several kinds in turn (pattern): the export for " + title +
                      " writes layers that are alike but for the first dense ones");
  if (model.window > 0)
    refused.push_back("attention within a window: the export for " + title + " writes none");
  if (model.sinks) refused.push_back("attention sinks: the export for " + title + " writes none");
  const QueryKeyNorm norm = model.query_key_norm;
  if (norm == QueryKeyNorm::Heads || norm == QueryKeyNorm::Unweighted)
    refused.push_back("the norm of queries and keys is not of each head with weights: " + title +
                      " has that one");
}

std::vector<std::string> megatron_model(const MeshRun& run, std::vector<std::string>& refused) {
  const Architecture& model = run.architecture;
  const std::string title = "Megatron-LM";
  refuse_unlike_layers(model, title, refused);
  const Biases& bias = model.bias;
  if (bias.attention_output != bias.feed_forward || (bias.feed_forward && !bias.query_key_value))
    refused.emplace_back(
        "biases of some products: Megatron-LM has them for all, for none, or for query, key and "
        "value alone");
  if (model.experts > 0 && bias.router != bias.feed_forward)
    refused.emplace_back("router and experts differ in biases: Megatron-LM gives both or none");
  if (model.experts > 0 && run.mesh.size(Axis::Tensor) > 1 && !run.sequence_parallel)
    refused.emplace_back(
        "experts beside tp without sequence_parallel: Megatron-LM trains them with it alone; set "
        "parallel.sequence_parallel: true");
  Flags flags;
  flags.add("--hidden-size", model.hidden);
  flags.add("--ffn-hidden-size", dense_width(model));
  add_attention(model, flags);
  if (model.experts > 0) add_experts(run, flags);
  flags.add("--seq-length", model.sequence);
  flags.add("--max-position-embeddings", std::max(model.sequence, model.positions));
  flags.add("--position-embedding-type " + position_of(model.position));
  if (model.norm == NormKind::Rms) flags.add("--normalization RMSNorm");
  if (model.activation == Activation::Swiglu) flags.add("--swiglu");
  if (model.activation == Activation::SquaredRelu) flags.add("--squared-relu");
  add_biases(bias, flags);
  if (!model.tied_embedding) flags.add("--untie-embeddings-and-output-weights");
  const std::string dropout = shortest(model.dropout);
  flags.add("--attention-dropout " + dropout);
  flags.add("--hidden-dropout " + dropout);
  // The tokenizer has a token besides; a multiple of 1 leaves the vocabulary's padding to tp.
  flags.add("--tokenizer-type NullTokenizer");
  flags.add("--vocab-size", model.vocabulary - 1);
  flags.add("--make-vocab-size-divisible-by", 1);
  return flags.flags;
}

}  // namespace pfeife
