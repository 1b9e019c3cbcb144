#include "planner/ir/architecture.h"

namespace pfeife {

std::int64_t parameter_count(const Architecture& of) {
  const std::int64_t norm = of.hidden * (of.norm == NormKind::Layer ? 2 : 1);
  const std::int64_t queries = of.heads * of.head_size, keys = of.kv_heads * of.head_size;
  std::int64_t attention = of.hidden * (queries + 2 * keys) + queries * of.hidden;
  if (of.bias) attention += queries + 2 * keys + of.hidden;
  const std::int64_t inward = of.activation == Activation::Swiglu ? 2 : 1;
  std::int64_t feed_forward = of.hidden * of.feed_forward * (inward + 1);
  if (of.bias) feed_forward += inward * of.feed_forward + of.hidden;
  if (of.experts > 0) feed_forward = of.experts * feed_forward + of.hidden * of.experts;
  std::int64_t outside = of.vocabulary * of.hidden * (of.tied_embedding ? 1 : 2) + norm;
  if (of.position == PositionKind::Learned) outside += of.sequence * of.hidden;
  return of.layers * (attention + feed_forward + 2 * norm) + outside;
}

}  // namespace pfeife
