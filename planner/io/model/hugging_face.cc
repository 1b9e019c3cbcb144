#include <algorithm>
#include <map>
#include <sstream>

#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostFigure = std::int64_t{1} << 30;

/// Figures of absent fields, by model_type: names, each before its number. Source: the
/// configuration classes of transformers 5.24.0. kimi_k2 is as deepseek_v3 and says all; llama4 has
/// a text_config.
const std::map<std::string, std::string> kDefaults = {
    {"deepseek_v3",
     "vocab_size 129280 hidden_size 7168 intermediate_size 18432 moe_intermediate_size 2048 "
     "num_hidden_layers 61 num_attention_heads 128 n_routed_experts 256 n_shared_experts 1 "
     "num_experts_per_tok 8 first_k_dense_replace 3 q_lora_rank 1536 kv_lora_rank 512 "
     "qk_rope_head_dim 64 qk_nope_head_dim 128 v_head_dim 128"},
    {"glm4_moe",
     "vocab_size 151552 hidden_size 4096 intermediate_size 10944 moe_intermediate_size 1408 "
     "num_hidden_layers 46 num_attention_heads 96 num_key_value_heads 8 n_routed_experts 128 "
     "n_shared_experts 1 num_experts_per_tok 8 first_k_dense_replace 1"},
    {"gpt2",
     "vocab_size 50257 n_embd 768 n_layer 12 n_head 12 n_positions 1024 tie_word_embeddings 1"},
    {"gpt_oss",
     "vocab_size 201088 hidden_size 2880 intermediate_size 2880 num_hidden_layers 36 "
     "num_attention_heads 64 num_key_value_heads 8 head_dim 64 num_local_experts 128 "
     "num_experts_per_tok 4 sliding_window 128 attention_bias 1"},
    {"kimi_k2", ""},
    {"llama",
     "vocab_size 32000 hidden_size 4096 intermediate_size 11008 num_hidden_layers 32 "
     "num_attention_heads 32"},
    {"llama4", ""},
    {"llama4_text",
     "vocab_size 202048 hidden_size 5120 intermediate_size 8192 intermediate_size_mlp 16384 "
     "num_hidden_layers 48 num_attention_heads 40 num_key_value_heads 8 head_dim 128 "
     "num_local_experts 16 num_experts_per_tok 1 interleave_moe_layer_step 1 "
     "no_rope_layer_interval 4 attention_chunk_size 8192 use_qk_norm 1"},
    {"minimax_m2",
     "vocab_size 200064 hidden_size 3072 intermediate_size 1536 num_hidden_layers 62 "
     "num_attention_heads 48 num_key_value_heads 8 head_dim 128 num_local_experts 256 "
     "num_experts_per_tok 8"},
    {"mistral",
     "vocab_size 32000 hidden_size 4096 intermediate_size 14336 num_hidden_layers 32 "
     "num_attention_heads 32 num_key_value_heads 8 sliding_window 4096"},
    {"mixtral",
     "vocab_size 32000 hidden_size 4096 intermediate_size 14336 num_hidden_layers 32 "
     "num_attention_heads 32 num_key_value_heads 8 num_local_experts 8 num_experts_per_tok 2"},
    {"nemotron_h",
     "vocab_size 131072 hidden_size 4096 intermediate_size 21504 num_attention_heads 32 "
     "num_key_value_heads 8 head_dim 128 ssm_state_size 128 mamba_num_heads 128 "
     "mamba_head_dim 64 n_groups 8 conv_kernel 4 chunk_size 128 use_conv_bias 1 "
     "n_routed_experts 8 n_shared_experts 1 moe_intermediate_size 7688 "
     "moe_shared_expert_intermediate_size 7688 num_experts_per_tok 2"},
    {"phi3",
     "vocab_size 32064 hidden_size 3072 intermediate_size 8192 num_hidden_layers 32 "
     "num_attention_heads 32"},
    {"qwen2",
     "vocab_size 151936 hidden_size 4096 intermediate_size 22016 num_hidden_layers 32 "
     "num_attention_heads 32 num_key_value_heads 32"},
    {"qwen3",
     "vocab_size 151936 hidden_size 4096 intermediate_size 22016 num_hidden_layers 32 "
     "num_attention_heads 32 num_key_value_heads 32 head_dim 128"},
    {"qwen3_moe",
     "vocab_size 151936 hidden_size 2048 intermediate_size 6144 moe_intermediate_size 768 "
     "num_hidden_layers 24 num_attention_heads 32 num_key_value_heads 4 num_experts 128 "
     "num_experts_per_tok 8 decoder_sparse_step 1"},
};

/// A config with the defaults of its kind.
class Config {
 public:
  explicit Config(const YamlNode& root) : root_(root) {
    std::vector<std::pair<std::string, std::string>> kinds;
    for (const auto& [kind, defaults] : kDefaults) kinds.emplace_back(kind, kind);
    kind_ = root.at("model_type").as_one_of<std::string>(kinds);
    std::istringstream words(kDefaults.at(kind_));
    for (std::string key; words >> key;) words >> defaults_[key];
  }
  const YamlNode& root() const { return root_; }
  const std::string& kind() const { return kind_; }

  /// nullopt: neither the file nor the kind says it.
  std::optional<std::int64_t> figure(const std::string& key, std::int64_t least = 1) const {
    if (const auto node = root_.find(key)) {
      if (node->is_null()) return std::nullopt;
      return node->as_int(least, kMostFigure);
    }
    const auto known = defaults_.find(key);
    return known == defaults_.end() ? std::nullopt : std::optional(known->second);
  }
  std::int64_t at(const std::string& key, std::int64_t least = 1) const {
    if (const auto found = figure(key, least)) return *found;
    return root_.at(key).as_int(least, kMostFigure);
  }
  bool is_true(const std::string& key) const {
    const auto node = root_.find(key);
    if (node && !node->is_null()) return node->as_bool();
    return defaults_.contains(key) && defaults_.at(key) != 0;
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
  std::map<std::string, std::int64_t> defaults_;
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

bool has_latent_attention(const Config& config) {
  return config.kind() == "deepseek_v3" || config.kind() == "kimi_k2";
}

/// Which products have a bias, by the kind's own modules.
Biases biases(const Config& config) {
  const std::string& kind = config.kind();
  if (kind == "gpt_oss") {
    const bool attention = config.is_true("attention_bias");
    return {attention, attention, true, true};
  }
  if (kind == "glm4_moe") return {config.is_true("attention_bias"), false, false, false};
  if (kind == "qwen2") return {true, false, false, false};
  const bool both = kind == "llama" || kind == "llama4_text" || kind.starts_with("qwen3");
  const bool attention = both && config.is_true("attention_bias");
  return {attention, attention, kind == "llama" && config.is_true("mlp_bias"), false};
}

QueryKeyNorm query_key_norm(const Config& config) {
  const std::string& kind = config.kind();
  if (kind.starts_with("qwen3")) return QueryKeyNorm::Head;
  if (kind == "minimax_m2") return QueryKeyNorm::Heads;
  if (!config.is_true("use_qk_norm")) return QueryKeyNorm::None;
  if (kind == "glm4_moe") return QueryKeyNorm::Head;
  return kind == "llama4_text" ? QueryKeyNorm::Unweighted : QueryKeyNorm::None;
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
  architecture.query_key_norm = query_key_norm(config);
  architecture.bias = biases(config);
  architecture.sinks = config.kind() == "gpt_oss";
  const bool windowed = config.kind().starts_with("qwen") ? config.is_true("use_sliding_window")
                                                          : config.kind() != "gpt_oss";
  if (windowed) architecture.window = config.figure("sliding_window").value_or(0);
  return architecture;
}

/// [layer] The words of a list of as many; the default where there is none.
template <class T, class Default>
std::vector<T> each_layer(const Config& config, const std::string& key, std::int64_t layers,
                          const std::vector<std::pair<std::string, T>>& words,
                          const Default& otherwise) {
  std::vector<T> all;
  const auto list = config.root().find(key);
  if (!list || list->is_null() || list->items().empty()) {
    for (std::int64_t l = 0; l < layers; ++l) all.push_back(otherwise(l));
    return all;
  }
  for (const YamlNode& item : list->items()) all.push_back(item.as_one_of<T>(words));
  if (std::ssize(all) < layers)
    list->fail(stream_all("has ", all.size(), " entries for ", layers, " layers; one a layer"));
  return all;
}

/// Layers with a sliding window and without, in turn unless the file lists them.
void read_windows(const Config& config, Architecture& architecture) {
  const std::int64_t window = config.figure("sliding_window").value_or(0);
  for (const bool sliding :
       each_layer<bool>(config, "layer_types", architecture.layers,
                        {{"sliding_attention", true}, {"full_attention", false}},
                        [](std::int64_t l) { return l % 2 == 0; }))
    architecture.pattern.push_back(
        {.feed_forward = FeedForwardKind::Experts, .window = sliding ? window : 0});
}

/// Llama 4: layers that rotate attend within chunks, the others to all; some have experts.
void read_chunks(const Config& config, Architecture& architecture) {
  const std::int64_t chunk = config.figure("attention_chunk_size").value_or(0);
  const std::int64_t every = config.at("no_rope_layer_interval"),
                     step = config.at("interleave_moe_layer_step");
  const std::vector<bool> rotates =
      each_layer<bool>(config, "no_rope_layers", architecture.layers, {{"1", true}, {"0", false}},
                       [&](std::int64_t l) { return (l + 1) % every != 0; });
  std::vector<bool> experts(static_cast<std::size_t>(architecture.layers), false);
  const auto listed = config.root().find("moe_layers");
  if (listed && !listed->is_null()) {
    for (const YamlNode& layer : listed->items())
      experts[static_cast<std::size_t>(layer.as_int(0, architecture.layers - 1))] = true;
  } else {
    for (std::int64_t l = step - 1; l < architecture.layers; l += step)
      experts[static_cast<std::size_t>(l)] = true;
  }
  for (std::size_t l = 0; l < experts.size(); ++l)
    architecture.pattern.push_back(
        {.feed_forward = experts[l] ? FeedForwardKind::Experts : FeedForwardKind::Dense,
         .chunk = rotates[l] ? chunk : 0,
         .rotary = rotates[l]});
}

/// Layers that are a Mamba-2 mixer, attention, a feed-forward part or experts, one each.
Architecture nemotron_h(const Config& config) {
  config.check_activation("mlp_hidden_act", {"relu2"});
  config.check_activation("mamba_hidden_act", {"silu"});
  for (const char* key : {"use_bias", "mamba_proj_bias"})
    if (config.is_true(key))
      config.refuse(key, "products of Mamba layers with biases have no price");
  if (config.figure("moe_latent_size"))
    config.refuse("moe_latent_size", "experts of compressed tokens have no price; write null");
  Architecture architecture;
  architecture.hidden = config.at("hidden_size");
  architecture.heads = config.at("num_attention_heads");
  architecture.kv_heads = config.figure("num_key_value_heads").value_or(architecture.heads);
  architecture.feed_forward = config.at("intermediate_size");
  architecture.norm = NormKind::Rms;
  architecture.activation = Activation::SquaredRelu;
  architecture.position = PositionKind::None;
  architecture.bias = {false, false, config.is_true("mlp_bias"),
                       false};  // as transformers builds it
  architecture.mamba = Mamba{.heads = config.at("mamba_num_heads"),
                             .head_size = config.at("mamba_head_dim"),
                             .groups = config.at("n_groups"),
                             .state = config.at("ssm_state_size"),
                             .convolution = config.at("conv_kernel"),
                             .chunk = config.at("chunk_size"),
                             .convolution_bias = config.is_true("use_conv_bias")};
  const YamlNode pattern = config.root().at("hybrid_override_pattern");
  const std::map<char, LayerKind> kinds = {
      {'M', {.mixer = MixerKind::Mamba, .feed_forward = FeedForwardKind::None}},
      {'*', {.feed_forward = FeedForwardKind::None}},
      {'-', {.mixer = MixerKind::None}},
      {'E', {.mixer = MixerKind::None, .feed_forward = FeedForwardKind::Experts}}};
  for (const char letter : pattern.as_string()) {
    const auto kind = kinds.find(letter);
    if (kind == kinds.end())
      pattern.fail(stream_all("'", letter,
                              "' is no kind of layer; M is Mamba, * attention, - a "
                              "feed-forward layer, E experts"));
    architecture.pattern.push_back(kind->second);
  }
  if (architecture.pattern.empty()) pattern.fail("names no layer; one letter a layer");
  if (architecture.bias.feed_forward && pattern.as_string().find('E') != std::string::npos)
    config.refuse("mlp_bias", "biases of shared experts alone have no price; write false");
  architecture.layers = std::ssize(architecture.pattern);
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

/// Qwen3: every so many-th layer has experts, but for those that are listed.
void read_sparse_layers(const Config& config, Architecture& architecture) {
  const std::int64_t step = config.at("decoder_sparse_step");
  for (std::int64_t l = 0; l < architecture.layers; ++l)
    architecture.pattern.push_back(
        {.feed_forward = (l + 1) % step == 0 ? FeedForwardKind::Experts : FeedForwardKind::Dense,
         .window = architecture.window});
  if (const auto dense = config.root().find("mlp_only_layers"); dense && !dense->is_null())
    for (const YamlNode& layer : dense->items())
      if (const std::int64_t l = layer.as_int(0, kMostFigure); l < architecture.layers)
        architecture.pattern[static_cast<std::size_t>(l)].feed_forward = FeedForwardKind::Dense;
}

/// The number of experts is called in one way or another; null if there is none.
std::optional<std::int64_t> expert_count(const Config& config, const Architecture& architecture) {
  const auto has_experts = [](const LayerKind& kind) {
    return kind.feed_forward == FeedForwardKind::Experts;
  };
  const bool named = has_latent_attention(config) || config.kind() == "glm4_moe" ||
                     config.kind() == "mixtral" || config.kind() == "minimax_m2" ||
                     config.kind() == "qwen3_moe";
  if (!named && std::ranges::none_of(architecture.pattern, has_experts)) return std::nullopt;
  for (const char* key : {"n_routed_experts", "num_local_experts", "num_experts"})
    if (config.root().find(key)) return config.at(key);
  for (const char* key : {"n_routed_experts", "num_local_experts"})
    if (const auto count = config.figure(key)) return count;
  return config.at("num_experts");
}

void read_experts(const Config& config, Architecture& architecture) {
  const std::optional<std::int64_t> experts = expert_count(config, architecture);
  if (!experts) return;
  architecture.experts = *experts;
  architecture.top_k = config.at("num_experts_per_tok");
  if (architecture.top_k > architecture.experts)
    config.refuse("num_experts_per_tok",
                  stream_all("there are only ", architecture.experts, " experts"));
  architecture.shared_experts = config.figure("n_shared_experts", 0).value_or(0);
  const std::string& kind = config.kind();
  if (kind == "mixtral" || kind == "minimax_m2" || kind == "gpt_oss")
    return;  // their intermediate_size is of an expert
  if (kind == "llama4_text") {
    architecture.shared_experts = 1;
    architecture.dense_feed_forward = config.at("intermediate_size_mlp");
    return;
  }
  architecture.dense_feed_forward = architecture.feed_forward;
  architecture.feed_forward = config.at("moe_intermediate_size");
  if (kind == "nemotron_h")
    architecture.shared_feed_forward = config.at("moe_shared_expert_intermediate_size");
  else if (kind == "qwen3_moe")
    read_sparse_layers(config, architecture);
  else
    architecture.dense_layers =
        std::min(config.figure("first_k_dense_replace", 0).value_or(0), architecture.layers);
}

/// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, sec. 2.2).
void note_prediction_layers(const Config& config, Architecture& architecture) {
  const char* const key =
      config.kind() == "minimax_m2" ? "num_mtp_modules" : "num_nextn_predict_layers";
  const std::int64_t layers = config.figure(key, 0).value_or(0);
  if (layers == 0) return;
  architecture.left_out.push_back(
      stream_all("not planned: ", key, " ", layers,
                 " (multi-token prediction); parameters, step and memory of the last stage lack ",
                 layers == 1 ? "this layer" : "these layers"));
}

void read_heads(const Config& config, Architecture& architecture) {
  if (architecture.latent) return;
  if (architecture.heads % architecture.kv_heads != 0)
    config.refuse("num_key_value_heads",
                  stream_all(architecture.kv_heads, " does not divide the ", architecture.heads,
                             " heads; each key head serves equally many"));
  const char* const key =
      config.root().find("attention_head_dim") ? "attention_head_dim" : "head_dim";
  const std::optional<std::int64_t> size = config.figure(key);
  if (!size && architecture.hidden % architecture.heads != 0)
    config.root().fail(stream_all(architecture.heads, " heads do not divide the hidden size ",
                                  architecture.hidden,
                                  "; add head_dim if a head has a size of its own"));
  architecture.head_size = size.value_or(architecture.hidden / architecture.heads);
}

const char* const kStored =
    "quantization_config: of weights as they are stored; training is planned in the precision "
    "asked for, such as fp8_block (fits --precision, parallel.precision)";

/// Weights that a model is published in, fp8 or mxfp4, can be trained from in any precision; others
/// are for inference.
void check_stored(const YamlNode& quantized) {
  if (quantized.is_map())
    if (const auto method = quantized.find("quant_method");
        method && method->is_scalar() &&
        (method->as_string() == "fp8" || method->as_string() == "mxfp4"))
      return;
  quantized.fail(
      "training of quantized weights has no price, but for quant_method fp8 and mxfp4; take the "
      "entry out to plan for weights in 16 bits");
}

}  // namespace

bool is_hugging_face(const YamlNode& root) { return root.is_map() && root.find("model_type"); }

Architecture hugging_face_architecture(const YamlNode& root) {
  const Config config(root);
  if (config.kind() == "llama4") {
    Architecture text = hugging_face_architecture(root.at("text_config"));
    text.name = config.kind();
    text.left_out.emplace_back("not planned: vision_config (the text model alone is)");
    return text;
  }
  const auto quantized = root.find("quantization_config");
  const bool stored = quantized && !quantized->is_null();
  if (stored) check_stored(*quantized);
  Architecture architecture = config.kind() == "gpt2"         ? gpt2(config)
                              : config.kind() == "nemotron_h" ? nemotron_h(config)
                                                              : rotary(config);
  architecture.name = config.kind();
  architecture.sequence = 0;
  architecture.attention = AttentionKind::Fused;
  architecture.vocabulary = config.at("vocab_size");
  architecture.tied_embedding = config.is_true("tie_word_embeddings");
  if (has_latent_attention(config)) read_latent(config, architecture);
  if (config.kind() == "gpt_oss") read_windows(config, architecture);
  if (config.kind() == "llama4_text") read_chunks(config, architecture);
  read_heads(config, architecture);
  read_experts(config, architecture);
  note_prediction_layers(config, architecture);
  if (stored) architecture.left_out.push_back(kStored);
  return architecture;
}

}  // namespace pfeife
