// A transformer by its figures: what an architecture file says, and how a run divides it.
#pragma once

#include <cstdint>
#include <string>

#include "planner/ir/graph.h"

namespace pfeife {

enum class NormKind { Layer, Rms };
enum class Activation { Gelu, Swiglu };
enum class AttentionKind {
  Plain,  ///< scores, softmax and dropout as operators of their own; the scores are kept
  Fused,  ///< scaled_dot_product_attention
};
enum class PositionKind { Learned, Rotary };

struct Architecture {
  std::string name;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;     ///< hidden / heads unless the file says otherwise
  std::int64_t feed_forward = 1;  ///< of one expert where there are several
  std::int64_t vocabulary = 1;
  std::int64_t sequence = 1;
  std::int64_t experts = 0;  ///< 0 = a dense feed-forward layer
  std::int64_t top_k = 1;    ///< experts a token
  NormKind norm = NormKind::Layer;
  Activation activation = Activation::Gelu;
  AttentionKind attention = AttentionKind::Plain;
  PositionKind position = PositionKind::Learned;
  bool bias = true;
  bool tied_embedding = true;
  double dropout = 0;  ///< probability; 0 = there is none
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Parameters of the whole model.
std::int64_t parameter_count(const Architecture& of);

}  // namespace pfeife
