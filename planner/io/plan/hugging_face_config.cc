// config.json of a model of an architecture, as transformers 5 reads it: what NeMo AutoModel and
// the layers of a DeepSpeed pipeline are built from. Rotary frequencies are transformers' defaults.
#include <map>
#include <nlohmann/json.hpp>

#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

/// The model_type whose layers are like those of the model; "" = there is none.
std::string kind_of(const Architecture& model) {
  const Biases& bias = model.bias;
  const bool biased = bias.attention_output || bias.feed_forward || bias.router;
  const bool whole = model.head_size * model.heads == model.hidden;
  if (model.latent)
    return model.experts > 0 && model.shared_experts > 0 && !biased && !bias.query_key_value &&
                   shared_width(model) == model.shared_experts * model.feed_forward
               ? "deepseek_v3"
               : "";
  const bool normed = model.query_key_norm == QueryKeyNorm::Head;
  if (model.experts > 0) {
    if (biased || bias.query_key_value || model.shared_experts > 0 || model.dense_layers > 0)
      return "";
    return normed ? "qwen3_moe" : "mixtral";
  }
  if (normed)
    return bias.feed_forward || bias.query_key_value != bias.attention_output ? "" : "qwen3";
  if (bias.query_key_value && !biased && whole) return "qwen2";
  return bias.query_key_value == bias.attention_output ? "llama" : "";
}

nlohmann::ordered_json sizes(const Architecture& model, const std::string& kind) {
  static const std::map<std::string, std::string> classes{{"deepseek_v3", "DeepseekV3"},
                                                          {"qwen3_moe", "Qwen3Moe"},
                                                          {"mixtral", "Mixtral"},
                                                          {"qwen3", "Qwen3"},
                                                          {"qwen2", "Qwen2"},
                                                          {"llama", "Llama"}};
  nlohmann::ordered_json json{{"architectures", {classes.at(kind) + "ForCausalLM"}},
                              {"model_type", kind},
                              {"num_hidden_layers", model.layers},
                              {"hidden_size", model.hidden},
                              {"num_attention_heads", model.heads},
                              {"num_key_value_heads", model.kv_heads},
                              {"intermediate_size", dense_width(model)},
                              {"vocab_size", model.vocabulary},
                              {"max_position_embeddings", model.sequence},
                              {"hidden_act", "silu"},
                              {"tie_word_embeddings", model.tied_embedding},
                              {"attention_dropout", 0.0},
                              {"use_cache", false},
                              {"bos_token_id", 0},
                              {"eos_token_id", 1}};
  if (kind != "deepseek_v3" && kind != "qwen2") json["head_dim"] = model.head_size;
  if (kind == "llama" || kind == "qwen3") json["attention_bias"] = model.bias.query_key_value;
  if (kind == "llama") json["mlp_bias"] = model.bias.feed_forward;
  if (kind == "mixtral")
    json.update({{"num_local_experts", model.experts},
                 {"num_experts_per_tok", model.top_k},
                 {"sliding_window", nullptr}});
  if (kind == "qwen3_moe")
    json.update({{"moe_intermediate_size", model.feed_forward},
                 {"num_experts", model.experts},
                 {"num_experts_per_tok", model.top_k},
                 {"decoder_sparse_step", 1},
                 {"mlp_only_layers", nlohmann::json::array()},
                 {"norm_topk_prob", true}});
  if (const auto& latent = model.latent)
    json.update({{"moe_intermediate_size", model.feed_forward},
                 {"n_routed_experts", model.experts},
                 {"n_shared_experts", model.shared_experts},
                 {"num_experts_per_tok", model.top_k},
                 {"first_k_dense_replace", model.dense_layers},
                 {"n_group", 1},
                 {"topk_group", 1},
                 {"q_lora_rank", latent->query_rank},
                 {"kv_lora_rank", latent->key_value_rank},
                 {"qk_nope_head_dim", model.head_size},
                 {"qk_rope_head_dim", latent->rotary_size},
                 {"v_head_dim", latent->value_size}});
  return json;
}

}  // namespace

std::string hugging_face_config(const Architecture& model, const std::string& title,
                                std::vector<std::string>& refused) {
  refuse_unlike_layers(model, title, refused);
  const std::string kind = kind_of(model);
  const bool decoder = model.norm == NormKind::Rms && model.activation == Activation::Swiglu &&
                       model.position == PositionKind::Rotary && model.dropout == 0;
  if (model.attention == AttentionKind::Plain)
    refused.push_back("attention: plain; the export for " + title + " has fused attention");
  if (kind.empty() || !decoder) {
    refused.push_back(
        "the model is none of deepseek_v3, llama, mixtral, qwen2, qwen3, qwen3_moe (" +
        std::string("rms norms, swiglu, rotary positions, no dropout, their biases ") +
        "and shared experts), which the export for " + title + " writes");
    return "";
  }
  return sizes(model, kind).dump(2) + "\n";
}

}  // namespace pfeife
