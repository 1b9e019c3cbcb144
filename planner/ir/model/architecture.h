// A transformer by its figures: what an architecture file says, and how a run divides it.
//   const Architecture gpt{.name = "gpt", .layers = 24, .hidden = 2048, .heads = 16};
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/graph.h"

namespace pfeife {

enum class NormKind { Layer, Rms };
enum class Activation { Gelu, Swiglu };
enum class AttentionKind {
  Plain,  ///< scores, softmax and dropout as operators of their own; the scores are kept
  Fused,  ///< scaled_dot_product_attention
};
enum class PositionKind { Learned, Rotary };

/// Attention over compressed keys and values (DeepSeek-V2, arXiv 2405.04434, sec. 2.1).
struct LatentAttention {
  std::int64_t query_rank = 1, key_value_rank = 1;
  std::int64_t rotary_size = 1;  ///< of a head, besides head_size; its key is shared by all heads
  std::int64_t value_size = 1;   ///< of a head
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// Which products have a bias.
struct Biases {
  bool query_key_value = true, attention_output = true, feed_forward = true;
  friend bool operator==(const Biases&, const Biases&) = default;
};

struct Architecture {
  std::string name;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;     ///< hidden / heads unless the file says otherwise
  std::int64_t feed_forward = 1;  ///< of one expert where there are several
  std::int64_t vocabulary = 1;
  std::int64_t sequence = 1;              ///< tokens of a sample; 0 = the file leaves it open
  std::int64_t positions = 0;             ///< that are learned; 0 = as many as the sequence has
  std::int64_t window = 0;                ///< tokens that a token sees; 0 = all before it
  std::int64_t experts = 0;               ///< 0 = a dense feed-forward layer
  std::int64_t top_k = 1;                 ///< experts a token
  std::int64_t shared_experts = 0;        ///< that every token passes, of the size of the others
  std::int64_t dense_layers = 0;          ///< the first so many have no experts
  std::int64_t dense_feed_forward = 0;    ///< of these
  std::optional<LatentAttention> latent;  ///< in place of projections to heads
  NormKind norm = NormKind::Layer;
  Activation activation = Activation::Gelu;
  AttentionKind attention = AttentionKind::Plain;
  PositionKind position = PositionKind::Learned;
  Biases bias = {};
  bool query_key_norm = false;  ///< of every head's query and key, before they are rotated
  bool tied_embedding = true;
  double dropout = 0;  ///< probability; 0 = there is none
  /// Parts of the model that the file has and nothing here plans, a sentence each.
  std::vector<std::string> left_out = {};
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Parameters of the whole model.
std::int64_t parameter_count(const Architecture& of);
/// The parameters that a token passes: of the experts, the ones it is sent to.
std::int64_t active_parameter_count(const Architecture& of);
/// FLOPs of a token forward and backward, as in the usual definition of utilization: 6 a parameter
/// that it passes, 12 x layers x heads x head size x sequence for attention, in full although
/// masked (Chowdhery et al. 2022, app. B).
Flops model_flops_per_token(const Architecture& of);

}  // namespace pfeife
