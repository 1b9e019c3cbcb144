#include "planner/io/model/hugging_face.h"

#include <algorithm>
#include <map>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostFigure = std::int64_t{1} << 30;

/// Figures of absent fields, by model_type. Source: the configuration classes of transformers
/// 5.24.0.
const std::map<std::string, std::map<std::string, std::int64_t>> kDefaults = {
    {"deepseek_v3",
     {{"vocab_size", 129280},
      {"hidden_size", 7168},
      {"intermediate_size", 18432},
      {"moe_intermediate_size", 2048},
      {"num_hidden_layers", 61},
      {"num_attention_heads", 128},
      {"n_routed_experts", 256},
      {"n_shared_experts", 1},
      {"num_experts_per_tok", 8},
      {"first_k_dense_replace", 3},
      {"q_lora_rank", 1536},
      {"kv_lora_rank", 512},
      {"qk_rope_head_dim", 64},
      {"qk_nope_head_dim", 128},
      {"v_head_dim", 128}}},
    {"gpt2",
     {{"vocab_size", 50257},
      {"n_embd", 768},
      {"n_layer", 12},
      {"n_head", 12},
      {"n_positions", 1024},
      {"tie_word_embeddings", 1}}},
    {"llama",
     {{"vocab_size", 32000},
      {"hidden_size", 4096},
      {"intermediate_size", 11008},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32}}},
    {"mistral",
     {{"vocab_size", 32000},
      {"hidden_size", 4096},
      {"intermediate_size", 14336},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 8},
      {"sliding_window", 4096}}},
    {"mixtral",
     {{"vocab_size", 32000},
      {"hidden_size", 4096},
      {"intermediate_size", 14336},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 8},
      {"num_local_experts", 8},
      {"num_experts_per_tok", 2}}},
    {"phi3",
     {{"vocab_size", 32064},
      {"hidden_size", 3072},
      {"intermediate_size", 8192},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32}}},
    {"qwen2",
     {{"vocab_size", 151936},
      {"hidden_size", 4096},
      {"intermediate_size", 22016},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 32}}},
    {"qwen3",
     {{"vocab_size", 151936},
      {"hidden_size", 4096},
      {"intermediate_size", 22016},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 32},
      {"head_dim", 128}}},
    {"qwen3_moe",
     {{"vocab_size", 151936},
      {"hidden_size", 2048},
      {"intermediate_size", 6144},
      {"moe_intermediate_size", 768},
      {"num_hidden_layers", 24},
      {"num_attention_heads", 32},
      {"num_key_value_heads", 4},
      {"num_experts", 128},
      {"num_experts_per_tok", 8},
      {"decoder_sparse_step", 1}}},
};

/// A config with the defaults of its kind.
class Config {
 public:
  explicit Config(const YamlNode& root) : root_(root) {
    std::vector<std::pair<std::string, std::string>> kinds;
    for (const auto& [kind, defaults] : kDefaults) kinds.emplace_back(kind, kind);
    kind_ = root.at("model_type").as_one_of<std::string>(kinds);
  }
  const YamlNode& root() const { return root_; }
  const std::string& kind() const { return kind_; }

  /// nullopt: neither the file nor the kind says it.
  std::optional<std::int64_t> figure(const std::string& key, std::int64_t least = 1) const {
    if (const auto node = root_.find(key)) {
      if (node->is_null()) return std::nullopt;
      return node->as_int(least, kMostFigure);
    }
    const auto& defaults = kDefaults.at(kind_);
    const auto known = defaults.find(key);
    if (known == defaults.end()) return std::nullopt;
    return known->second;
  }
  std::int64_t at(const std::string& key, std::int64_t least = 1) const {
    if (const auto found = figure(key, least)) return *found;
    return root_.at(key).as_int(least, kMostFigure);
  }
  bool is_true(const std::string& key) const {
    const auto node = root_.find(key);
    if (node && !node->is_null()) return node->as_bool();
    const auto& defaults = kDefaults.at(kind_);
    return defaults.contains(key) && defaults.at(key) != 0;
  }

  void refuse(const std::string& key, const std::string& message) const {
    root_.at(key).fail(message);
  }
  /// Refuses an activation that is none of `words`.
  void check_activation(const std::string& key, const std::vector<std::string>& words) const {
    std::vector<std::pair<std::string, bool>> allowed;
    for (const std::string& word : words) allowed.emplace_back(word, true);
    if (const auto node = root_.find(key)) node->as_one_of<bool>(allowed);
  }

 private:
  const YamlNode& root_;
  std::string kind_;
};

Architecture gpt2(const Config& config) {
  config.check_activation("activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh"});
  Architecture architecture;
  architecture.hidden = config.at("n_embd");
  architecture.layers = config.at("n_layer");
  architecture.heads = architecture.kv_heads = config.at("n_head");
  architecture.feed_forward = config.figure("n_inner").value_or(4 * architecture.hidden);
  architecture.positions = config.at("n_positions");
  return architecture;
}

/// Kinds with rotary positions, RMS norms and gated feed-forward layers.
Architecture rotary(const Config& config) {
  config.check_activation("hidden_act", {"silu"});
  Architecture architecture;
  architecture.hidden = config.at("hidden_size");
  architecture.layers = config.at("num_hidden_layers");
  architecture.heads = config.at("num_attention_heads");
  architecture.kv_heads = config.figure("num_key_value_heads").value_or(architecture.heads);
  architecture.feed_forward = config.at("intermediate_size");
  architecture.norm = NormKind::Rms;
  architecture.activation = Activation::Swiglu;
  architecture.position = PositionKind::Rotary;
  architecture.query_key_norm = config.kind().starts_with("qwen3");
  const bool attention =
      (config.kind() == "llama" || architecture.query_key_norm) && config.is_true("attention_bias");
  architecture.bias = {attention || config.kind() == "qwen2", attention,
                       config.kind() == "llama" && config.is_true("mlp_bias")};
  const bool windowed =
      config.kind().starts_with("qwen") ? config.is_true("use_sliding_window") : true;
  if (windowed) architecture.window = config.figure("sliding_window").value_or(0);
  return architecture;
}

void read_latent(const Config& config, Architecture& architecture) {
  if (!config.figure("q_lora_rank"))
    config.refuse("q_lora_rank", "queries that are not compressed have no price yet; give a rank");
  if (config.is_true("attention_bias"))
    config.refuse("attention_bias", "latent attention with biases has no price; write false");
  architecture.kv_heads = architecture.heads;
  architecture.head_size = config.at("qk_nope_head_dim");
  architecture.latent = LatentAttention{.query_rank = config.at("q_lora_rank"),
                                        .key_value_rank = config.at("kv_lora_rank"),
                                        .rotary_size = config.at("qk_rope_head_dim"),
                                        .value_size = config.at("v_head_dim")};
}

/// The first so many layers have no experts; refused if others have none as well.
std::int64_t layers_before_experts(const Config& config) {
  if (config.kind() != "qwen3_moe") return config.figure("first_k_dense_replace", 0).value_or(0);
  if (config.at("decoder_sparse_step") != 1)
    config.refuse("decoder_sparse_step",
                  "layers with and without experts in turn have no price; only 1 has");
  std::int64_t first = 0;
  if (const auto dense = config.root().find("mlp_only_layers"); dense && !dense->is_null())
    for (const YamlNode& layer : dense->items())
      if (layer.as_int(0, kMostFigure) != first++)
        layer.fail(
            "layers without experts behind others with have no price; name the first ones "
            "alone, in order");
  return first;
}

/// The number of experts is called in one way or another; null if there is none.
std::optional<std::int64_t> expert_count(const Config& config) {
  if (config.kind() == "deepseek_v3") return config.at("n_routed_experts");
  if (config.kind() != "mixtral" && config.kind() != "qwen3_moe") return std::nullopt;
  for (const char* key : {"num_local_experts", "num_experts"})
    if (config.root().find(key)) return config.at(key);
  return config.figure(config.kind() == "mixtral" ? "num_local_experts" : "num_experts");
}

void read_experts(const Config& config, Architecture& architecture) {
  const std::optional<std::int64_t> experts = expert_count(config);
  if (!experts) return;
  architecture.experts = *experts;
  architecture.top_k = config.at("num_experts_per_tok");
  if (architecture.top_k > architecture.experts)
    config.refuse("num_experts_per_tok",
                  stream_all("there are only ", architecture.experts, " experts"));
  architecture.shared_experts = config.figure("n_shared_experts", 0).value_or(0);
  if (config.kind() == "mixtral") return;  // its intermediate_size is of an expert
  architecture.dense_layers = std::min(layers_before_experts(config), architecture.layers);
  architecture.dense_feed_forward = architecture.feed_forward;
  architecture.feed_forward = config.at("moe_intermediate_size");
}

/// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, sec. 2.2).
void note_prediction_layers(const Config& config, Architecture& architecture) {
  const std::int64_t layers = config.figure("num_nextn_predict_layers", 0).value_or(0);
  if (layers == 0) return;
  architecture.left_out.push_back(
      stream_all("not planned: num_nextn_predict_layers ", layers,
                 " (multi-token prediction); parameters, step and memory of the last stage lack ",
                 layers == 1 ? "this layer" : "these layers"));
}

void read_heads(const Config& config, Architecture& architecture) {
  if (architecture.latent) return;
  if (architecture.heads % architecture.kv_heads != 0)
    config.refuse("num_key_value_heads",
                  stream_all(architecture.kv_heads, " does not divide the ", architecture.heads,
                             " heads; each key head serves equally many"));
  const std::optional<std::int64_t> size = config.figure("head_dim");
  if (!size && architecture.hidden % architecture.heads != 0)
    config.root().fail(stream_all(architecture.heads, " heads do not divide the hidden size ",
                                  architecture.hidden,
                                  "; add head_dim if a head has a size of its own"));
  architecture.head_size = size.value_or(architecture.hidden / architecture.heads);
}

const char* const kStored =
    "quantization_config: fp8 of weights as they are stored; training is planned in the precision "
    "asked for, such as fp8_block (fits --precision, parallel.precision)";

/// Weights in fp8 can be trained from in any precision; others are for inference.
void check_stored(const YamlNode& quantized) {
  if (quantized.is_map())
    if (const auto method = quantized.find("quant_method");
        method && method->is_scalar() && method->as_string() == "fp8")
      return;
  quantized.fail(
      "training of quantized weights has no price, but for quant_method fp8; take the entry out to "
      "plan for weights in 16 bits");
}

}  // namespace

bool is_hugging_face(const YamlNode& root) { return root.is_map() && root.find("model_type"); }

Architecture hugging_face_architecture(const YamlNode& root) {
  const Config config(root);
  const auto quantized = root.find("quantization_config");
  const bool stored = quantized && !quantized->is_null();
  if (stored) check_stored(*quantized);
  Architecture architecture = config.kind() == "gpt2" ? gpt2(config) : rotary(config);
  architecture.name = config.kind();
  architecture.sequence = 0;
  architecture.attention = AttentionKind::Fused;
  architecture.vocabulary = config.at("vocab_size");
  architecture.tied_embedding = config.is_true("tie_word_embeddings");
  if (config.kind() == "deepseek_v3") read_latent(config, architecture);
  read_heads(config, architecture);
  read_experts(config, architecture);
  note_prediction_layers(config, architecture);
  if (stored) architecture.left_out.push_back(kStored);
  return architecture;
}

}  // namespace pfeife
