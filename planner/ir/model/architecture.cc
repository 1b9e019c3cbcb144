#include "planner/ir/model/architecture.h"

namespace pfeife {
namespace {

std::int64_t attention_parameters(const Architecture& of) {
  const std::int64_t queries = of.heads * of.head_size, keys = of.kv_heads * of.head_size;
  if (of.latent) {
    const LatentAttention& to = *of.latent;
    const std::int64_t norms = to.query_rank + to.key_value_rank;
    return of.hidden * to.query_rank + to.query_rank * (queries + of.heads * to.rotary_size) +
           of.hidden * (to.key_value_rank + to.rotary_size) +
           to.key_value_rank * (queries + of.heads * to.value_size) +
           of.heads * to.value_size * of.hidden + norms;
  }
  std::int64_t norms = 0;
  if (of.query_key_norm == QueryKeyNorm::Head) norms = 2 * of.head_size;
  if (of.query_key_norm == QueryKeyNorm::Heads) norms = queries + keys;
  return of.hidden * (queries + 2 * keys) + queries * of.hidden +
         (of.bias.query_key_value ? queries + 2 * keys : 0) +
         (of.bias.attention_output ? of.hidden : 0) + norms + (of.sinks ? of.heads : 0);
}

/// With the gated norm's weights, and of each head a step's bias, A and D.
std::int64_t mamba_parameters(const Architecture& of) {
  const Mamba& mamba = of.mamba.value();
  return of.hidden * (mamba.inner() + mamba.convolved() + mamba.heads) +
         mamba.convolved() * (mamba.convolution + (mamba.convolution_bias ? 1 : 0)) +
         3 * mamba.heads + mamba.inner() + mamba.inner() * of.hidden;
}

std::int64_t feed_forward_parameters(const Architecture& of, std::int64_t width) {
  const std::int64_t inward = of.activation == Activation::Swiglu ? 2 : 1;
  return of.hidden * width * (inward + 1) + (of.bias.feed_forward ? inward * width + of.hidden : 0);
}

/// `experts`: of a layer, besides shared ones.
std::int64_t layer_parameters(const Architecture& of, const LayerKind& kind, std::int64_t experts) {
  const std::int64_t norm = of.hidden * (of.norm == NormKind::Layer ? 2 : 1);
  std::int64_t sum = 0;
  if (kind.mixer == MixerKind::Attention) sum += norm + attention_parameters(of);
  if (kind.mixer == MixerKind::Mamba) sum += norm + mamba_parameters(of);
  if (kind.feed_forward == FeedForwardKind::Dense)
    sum += norm + feed_forward_parameters(of, dense_width(of));
  if (kind.feed_forward == FeedForwardKind::Experts)
    sum += norm + experts * feed_forward_parameters(of, of.feed_forward) +
           of.experts * (of.hidden + (of.bias.router ? 1 : 0)) +
           (of.shared_experts > 0 ? feed_forward_parameters(of, shared_width(of)) : 0);
  return sum;
}

/// `experts`: of a layer, besides shared ones.
std::int64_t count(const Architecture& of, std::int64_t experts) {
  const std::int64_t norm = of.hidden * (of.norm == NormKind::Layer ? 2 : 1);
  std::int64_t sum = of.vocabulary * of.hidden * (of.tied_embedding ? 1 : 2) + norm;
  if (of.position == PositionKind::Learned)
    sum += (of.positions > 0 ? of.positions : of.sequence) * of.hidden;
  for (std::int64_t layer = 0; layer < of.layers; ++layer)
    sum += layer_parameters(of, layer_kind(of, layer), experts);
  return sum;
}

}  // namespace

LayerKind layer_kind(const Architecture& of, std::int64_t layer) {
  if (!of.pattern.empty()) return of.pattern[static_cast<std::size_t>(layer) % of.pattern.size()];
  const bool experts = of.experts > 0 && layer >= of.dense_layers;
  return {.feed_forward = experts ? FeedForwardKind::Experts : FeedForwardKind::Dense,
          .window = of.window};
}

std::int64_t dense_width(const Architecture& of) {
  return of.dense_feed_forward > 0 ? of.dense_feed_forward : of.feed_forward;
}

std::int64_t shared_width(const Architecture& of) {
  return of.shared_feed_forward > 0 ? of.shared_feed_forward : of.shared_experts * of.feed_forward;
}

double counted_scores(const LayerKind& kind, double queries, double sequence) {
  const auto window = static_cast<double>(kind.window), chunk = static_cast<double>(kind.chunk);
  if (window > 0 && window < sequence)
    return queries * (window - window * (window - 1) / (2 * sequence));
  if (chunk > 0 && chunk < sequence) return queries * (chunk + 1) / 2;
  return queries * sequence;
}

std::int64_t parameter_count(const Architecture& of) { return count(of, of.experts); }

std::int64_t active_parameter_count(const Architecture& of) { return count(of, of.top_k); }

Flops model_flops_per_token(const Architecture& of) {
  const auto width = static_cast<double>(of.heads * of.head_size);
  const auto sequence = static_cast<double>(of.sequence);
  double flops = 6 * static_cast<double>(active_parameter_count(of));
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    const LayerKind kind = layer_kind(of, layer);
    if (kind.mixer == MixerKind::Attention) flops += 12 * width * counted_scores(kind, 1, sequence);
    if (kind.mixer == MixerKind::Mamba)
      flops += 21 * static_cast<double>(of.mamba->inner() * of.mamba->state);
  }
  return {flops};
}

}  // namespace pfeife
