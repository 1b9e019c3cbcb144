// The model of an architecture in torchtitan 0.3: layers by the builders of one of its families,
// with the architecture's sizes, in place of those of one of the family's own configs. Reasons for
// which no family has the model. Rotary frequencies are the family's: no architecture has them.
#include "planner/io/plan/plan_writers.h"
#include "planner/ir/basics/decimals.h"

namespace pfeife {
namespace {

struct Family {
  std::string module;   ///< of torchtitan.models
  std::string builder;  ///< of its layers
  std::string base;     ///< its config that is changed
  std::string rope;     ///< class, and what it takes besides sizes
};

/// The family whose layers are like those of the model.
Family family_of(const Architecture& model) {
  const std::string cosine = "CosSinRoPE.Config(theta=1000000.0, ";
  if (model.latent)
    return {"deepseek_v3", "_build_dsv3_layers", "671B", "ComplexRoPE.Config(theta=10000.0, "};
  if (model.experts > 0) return {"qwen3", "_build_qwen3_moe_layers", "30B-A3B", cosine};
  const bool whole = model.head_size * model.heads == model.hidden;
  if (model.query_key_norm == QueryKeyNorm::None && whole)
    return {"llama3", "_build_llama3_layers", model.tied_embedding ? "1B" : "8B",
            "ComplexRoPE.Config(theta=500000, "};
  return {"qwen3", "_build_qwen3_layers", model.tied_embedding ? "0.6B" : "8B", cosine};
}

void refuse_model(const MeshRun& run, std::vector<std::string>& refused) {
  const Architecture& model = run.architecture;
  const auto refuse = [&](bool has, const std::string& what) {
    if (has) refused.push_back(what);
  };
  refuse_unlike_layers(model, "torchtitan", refused);
  refuse(model.norm != NormKind::Rms, "norm: layer; torchtitan's language models have rms");
  refuse(model.activation != Activation::Swiglu,
         "the activation is not swiglu, which torchtitan's language models have");
  refuse(model.position != PositionKind::Rotary,
         "positions are not rotary, which they are in torchtitan's language models");
  refuse(model.attention == AttentionKind::Plain,
         "attention: plain; torchtitan's language models have fused attention");
  const Biases& bias = model.bias;
  refuse(bias.query_key_value || bias.attention_output || bias.feed_forward || bias.router,
         "biases of products: the export for torchtitan writes models without");
  refuse(model.dropout > 0, "dropout, which torchtitan's language models do not have");
  refuse(model.experts == 0 && model.latent.has_value(),
         "latent attention without experts: torchtitan's deepseek_v3 has both");
  refuse(model.experts > 0 && model.tied_embedding,
         "a tied embedding beside experts, which torchtitan's models do not have");
  const std::int64_t shared = model.shared_experts * model.feed_forward;
  refuse(model.latent && (model.shared_experts < 1 || shared_width(model) != shared),
         "shared experts as wide as the others: torchtitan's deepseek_v3 has at least one");
  refuse(model.experts > 0 && !model.latent && (model.shared_experts > 0 || model.dense_layers > 0),
         "shared experts or dense layers beside experts without latent attention, of which "
         "torchtitan has no model");
}

void refuse_experts(const MeshRun& run, std::vector<std::string>& refused) {
  const std::string experts = "ep " + std::to_string(run.mesh.experts);
  if (run.mesh.experts > 1 && run.zero == 0)
    refused.push_back(experts +
                      " over whole replicas: torchtitan divides experts among ranks that divide "
                      "parameters; set parallel.zero: 3");
  if (run.mesh.experts > 1 && run.mesh.size(Axis::Tensor) > 1)
    refused.push_back(
        experts + " beside tp " + std::to_string(run.mesh.size(Axis::Tensor)) +
        ": torchtitan divides experts among the ranks of tp, too; set parallel.tp: 1");
  if (run.architecture.experts > 0 && run.separate_experts)
    refused.emplace_back(
        "expert_products: separate; torchtitan has one kernel for a rank's experts");
}

/// Arguments of the builder of layers, in lines.
std::string layer_arguments(const MeshRun& run) {
  const Architecture& model = run.architecture;
  std::string text;
  const auto add = [&](const char* name, std::int64_t value) {
    text += std::string("        ") + name + "=" + std::to_string(value) + ",\n";
  };
  add("n_layers", model.layers);
  add("dim", model.hidden);
  add("n_heads", model.heads);
  if (const auto& latent = model.latent) {
    add("n_dense_layers", model.dense_layers);
    add("q_lora_rank", latent->query_rank);
    add("kv_lora_rank", latent->key_value_rank);
    add("qk_nope_head_dim", model.head_size);
    add("qk_rope_head_dim", latent->rotary_size);
    add("v_head_dim", latent->value_size);
    add("dense_hidden_dim", dense_width(model));
    add("num_shared_experts", model.shared_experts);
    text +=
        "        mscale=1.0,\n        router_score_func=\"sigmoid\",\n"
        "        router_route_norm=True,\n        non_blocking_capacity_factor=None,\n";
  } else {
    add("n_kv_heads", model.kv_heads);
    if (family_of(model).module == "qwen3") add("head_dim", model.head_size);
  }
  if (model.experts > 0) {
    add("moe_hidden_dim", model.feed_forward);
    add("num_experts", model.experts);
    add(model.latent ? "router_top_k" : "top_k", model.top_k);
    text += std::string("        moe_comm_backend=\"") + (run.once_a_host ? "deepep" : "standard") +
            "\",\n";
  } else {
    add("hidden_dim", model.feed_forward);
  }
  return text + "        attn_backend=\"flex\",\n        rope=rope,\n";
}

constexpr const char* kReplaced = R"py(    spec = family.model_registry(BASE)
    model = spec.model
    model = replace(
        model,
        dim=WIDTH,
        vocab_size=VOCABULARY,
        enable_weight_tying=TIED,
        layers=layers,
        tok_embeddings=replace(model.tok_embeddings, num_embeddings=VOCABULARY, embedding_dim=WIDTH),
        norm=replace(model.norm, normalized_shape=WIDTH),
        lm_head=replace(model.lm_head, in_features=WIDTH, out_features=VOCABULARY),
    )
    return replace(spec, flavor=MODEL, model=model)
)py";

}  // namespace

std::string torchtitan_model(const MeshRun& run, std::vector<std::string>& refused) {
  const Architecture& model = run.architecture;
  refuse_model(run, refused);
  refuse_experts(run, refused);
  const Family family = family_of(model);
  const std::int64_t rotated = model.latent ? model.latent->rotary_size : model.head_size;
  std::string text =
      "MODEL = \"" + model.name + "\"\nVOCABULARY = " + std::to_string(model.vocabulary) +
      "\nWIDTH = " + std::to_string(model.hidden) +
      "\nTIED = " + (model.tied_embedding ? "True" : "False") + "\nBASE = \"" + family.base +
      "\"\n\n\ndef model_spec():\n"
      "    \"\"\"The planned model, by the builders of torchtitan's " +
      family.module +
      "; its rotary frequencies are that family's.\"\"\"\n"
      "    from dataclasses import replace\n\n"
      "    import torchtitan.models." +
      family.module +
      " as family\n"
      "    from torchtitan.models.common import " +
      family.rope.substr(0, family.rope.find('.')) + "\n\n    rope = " + family.rope +
      "dim=" + std::to_string(rotated) + ", max_seq_len=" + std::to_string(model.sequence) +
      ")\n    layers = family." + family.builder + "(\n" + layer_arguments(run) + "    )\n";
  if (family.module == "qwen3" && model.query_key_norm == QueryKeyNorm::None)
    text += "    for layer in layers:\n        layer.attention.qk_norm = None\n";
  return text + kReplaced;
}

}  // namespace pfeife
