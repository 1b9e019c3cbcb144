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
enum class Activation { Gelu, Swiglu, SquaredRelu };
enum class AttentionKind {
  Plain,  ///< scores, softmax and dropout as operators of their own; the scores are kept
  Fused,  ///< scaled_dot_product_attention
};
enum class PositionKind { Learned, Rotary, None };
enum class QueryKeyNorm {
  None,
  Head,        ///< of every head by itself, before the rotation
  Heads,       ///< of a rank's heads together, before the rotation
  Unweighted,  ///< of every head, behind the rotation, in layers that rotate
};

/// Attention over compressed keys and values (DeepSeek-V2, arXiv 2405.04434, sec. 2.1).
struct LatentAttention {
  std::int64_t query_rank = 1, key_value_rank = 1;
  std::int64_t rotary_size = 1;  ///< of a head, besides head_size; its key is shared by all heads
  std::int64_t value_size = 1;   ///< of a head
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// A Mamba-2 layer (arXiv 2405.21060, sec. 6 and 7): one product makes gate, values, B, C and
/// steps; a convolution along the sequence; the state space in chunks; a gated norm; one product
/// out.
struct Mamba {
  std::int64_t heads = 1;
  std::int64_t head_size = 1;  ///< values of a head
  std::int64_t groups = 1;     ///< B and C are those of a group of heads
  std::int64_t state = 1;      ///< size of B, of C, and of a value's state
  std::int64_t convolution = 4;
  std::int64_t chunk = 128;  ///< tokens
  bool convolution_bias = true;
  std::int64_t inner() const { return heads * head_size; }
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
  friend bool operator==(const Mamba&, const Mamba&) = default;
};

enum class MixerKind { Attention, Mamba, None };
enum class FeedForwardKind { Dense, Experts, None };

/// What a layer is made of. With a mixer and a feed-forward part each has a norm and a residual.
struct LayerKind {
  MixerKind mixer = MixerKind::Attention;
  FeedForwardKind feed_forward = FeedForwardKind::Dense;
  std::int64_t window = 0;  ///< tokens that a token attends to, itself the last; 0 = all before it
  std::int64_t chunk = 0;   ///< tokens attend within chunks of so many; 0 = there are none
  bool rotary = true;       ///< if the model has rotary positions
  friend auto operator<=>(const LayerKind&, const LayerKind&) = default;
};

/// Which products have a bias.
struct Biases {
  bool query_key_value = true, attention_output = true, feed_forward = true, router = false;
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
  std::int64_t window = 0;                ///< as LayerKind's, of every layer
  std::int64_t experts = 0;               ///< 0 = a dense feed-forward layer
  std::int64_t top_k = 1;                 ///< experts a token
  std::int64_t shared_experts = 0;        ///< that every token passes
  std::int64_t shared_feed_forward = 0;   ///< width of all of them; 0 = that of the others each
  std::int64_t dense_layers = 0;          ///< the first so many have no experts
  std::int64_t dense_feed_forward = 0;    ///< of layers without experts in a model that has some
  std::vector<LayerKind> pattern = {};    ///< of the layers, repeated; empty = all alike but for
                                          ///< dense_layers
  std::optional<Mamba> mamba = {};        ///< of the layers that have one
  std::optional<LatentAttention> latent;  ///< in place of projections to heads
  NormKind norm = NormKind::Layer;
  Activation activation = Activation::Gelu;
  AttentionKind attention = AttentionKind::Plain;
  PositionKind position = PositionKind::Learned;
  Biases bias = {};
  QueryKeyNorm query_key_norm = QueryKeyNorm::None;
  bool sinks = false;  ///< a learned score of every head, which no token has (GPT-OSS)
  bool tied_embedding = true;
  double dropout = 0;  ///< probability; 0 = there is none
  /// Parts of the model that the file has and nothing here plans, a sentence each.
  std::vector<std::string> left_out = {};
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

LayerKind layer_kind(const Architecture& of, std::int64_t layer);
/// Width of the feed-forward part of a layer without experts.
std::int64_t dense_width(const Architecture& of);
/// Width of all shared experts together.
std::int64_t shared_width(const Architecture& of);
/// Scores of a head over all queries of a sequence that no mask hides; all of them where the mask
/// is causal alone: as a kernel's FLOPs are counted.
double counted_scores(const LayerKind& kind, double queries, double sequence);

/// Parameters of the whole model.
std::int64_t parameter_count(const Architecture& of);
/// The parameters that a token passes: of the experts, the ones it is sent to.
std::int64_t active_parameter_count(const Architecture& of);
/// FLOPs of a token forward and backward, as in the usual definition of utilization: 6 a parameter
/// that it passes, 12 x heads x head size x sequence for each layer's attention, in full although
/// masked (Chowdhery et al. 2022, app. B); with a window or chunks, 12 x heads x head size x the
/// mean of the tokens that are seen. Of a Mamba layer 21 x inner size x state (Megatron-LM,
/// training.py, mamba_layer_flops).
Flops model_flops_per_token(const Architecture& of);

}  // namespace pfeife
