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
  return of.hidden * (queries + 2 * keys) + queries * of.hidden +
         (of.bias.query_key_value ? queries + 2 * keys : 0) +
         (of.bias.attention_output ? of.hidden : 0) + (of.query_key_norm ? 2 * of.head_size : 0);
}

std::int64_t feed_forward_parameters(const Architecture& of, std::int64_t width) {
  const std::int64_t inward = of.activation == Activation::Swiglu ? 2 : 1;
  return of.hidden * width * (inward + 1) + (of.bias.feed_forward ? inward * width + of.hidden : 0);
}

/// `experts`: of a layer, besides shared ones.
std::int64_t count(const Architecture& of, std::int64_t experts) {
  const std::int64_t norm = of.hidden * (of.norm == NormKind::Layer ? 2 : 1);
  const std::int64_t feed_forward = feed_forward_parameters(of, of.feed_forward);
  std::int64_t outside = of.vocabulary * of.hidden * (of.tied_embedding ? 1 : 2) + norm;
  if (of.position == PositionKind::Learned)
    outside += (of.positions > 0 ? of.positions : of.sequence) * of.hidden;
  const std::int64_t each = attention_parameters(of) + 2 * norm;
  if (of.experts == 0) return of.layers * (each + feed_forward) + outside;
  const std::int64_t dense = of.dense_layers, router = of.hidden * of.experts;
  return of.layers * each + dense * feed_forward_parameters(of, of.dense_feed_forward) +
         (of.layers - dense) * ((experts + of.shared_experts) * feed_forward + router) + outside;
}

}  // namespace

std::int64_t parameter_count(const Architecture& of) { return count(of, of.experts); }

std::int64_t active_parameter_count(const Architecture& of) { return count(of, of.top_k); }

Flops model_flops_per_token(const Architecture& of) {
  const auto width = static_cast<double>(of.heads * of.head_size);
  return {6 * static_cast<double>(active_parameter_count(of)) +
          12 * static_cast<double>(of.layers) * width * static_cast<double>(of.sequence)};
}

}  // namespace pfeife
