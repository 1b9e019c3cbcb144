"""Parameters, and those that a token passes, of models that transformers builds on the meta device.

    python count_active.py > active.txt    # transformers 5.24.0 and torch; no weights are fetched

A line a model: parameters, parameters of a token (experts count as many times as a token has), config.json. Sizes of
published models are those of their config.json on huggingface.co, less what equals a default of transformers; of
llama4, the text model. kimi_k2 is built as deepseek_v3, which its `architectures` names.
"""

import json

import transformers

SMALL = {"hidden_size": 64, "vocab_size": 1000, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16}
NEMOTRON = {"hidden_size": 64, "vocab_size": 1000, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 160,
            "ssm_state_size": 16, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "chunk_size": 16}
CONFIGS = [
    # Qwen/Qwen3-235B-A22B
    {"model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 94,
     "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936},
    # moonshotai/Kimi-K2-Instruct
    {"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
     "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8,
     "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
     "vocab_size": 163840},
    # openai/gpt-oss-120b and -20b
    {"model_type": "gpt_oss"},
    {"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32},
    # zai-org/GLM-4.5 and GLM-4.5-Air
    {"model_type": "glm4_moe", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
     "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "n_routed_experts": 160, "first_k_dense_replace": 3,
     "attention_bias": True, "use_qk_norm": True},
    {"model_type": "glm4_moe", "head_dim": 128, "attention_bias": True},
    # MiniMaxAI/MiniMax-M2
    {"model_type": "minimax_m2"},
    # meta-llama/Llama-4-Scout-17B-16E and -Maverick-17B-128E
    {"model_type": "llama4_text"},
    {"model_type": "llama4_text", "num_local_experts": 128, "interleave_moe_layer_step": 2, "use_qk_norm": False},
    # nvidia/Nemotron-H-8B-Base-8K
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"},
    # nvidia/NVIDIA-Nemotron-Nano-9B-v2
    {"model_type": "nemotron_h", "hidden_size": 4480, "intermediate_size": 15680, "num_attention_heads": 40, "mamba_head_dim": 80,
     "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"},
    # nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
    {"model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
     "mamba_num_heads": 64, "mamba_head_dim": 64, "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
     "moe_shared_expert_intermediate_size": 3712, "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"},
    # small ones
    {"model_type": "gpt_oss", **SMALL, "intermediate_size": 48, "num_local_experts": 8, "num_experts_per_tok": 2},
    {"model_type": "gpt_oss", **SMALL, "intermediate_size": 48, "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": False,
     "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
    {"model_type": "glm4_moe", **SMALL, "intermediate_size": 160, "moe_intermediate_size": 48, "n_routed_experts": 8, "num_experts_per_tok": 2},
    {"model_type": "glm4_moe", **SMALL, "intermediate_size": 160, "moe_intermediate_size": 48, "n_routed_experts": 8, "num_experts_per_tok": 2,
     "first_k_dense_replace": 2, "attention_bias": True, "use_qk_norm": True, "n_shared_experts": 2},
    {"model_type": "minimax_m2", **SMALL, "intermediate_size": 48, "num_local_experts": 8, "num_experts_per_tok": 2},
    {"model_type": "llama4_text", **SMALL, "intermediate_size": 48, "intermediate_size_mlp": 160, "num_local_experts": 8},
    {"model_type": "llama4_text", **SMALL, "intermediate_size": 48, "intermediate_size_mlp": 160, "num_local_experts": 8,
     "interleave_moe_layer_step": 2, "use_qk_norm": False},
    {"model_type": "llama4_text", **SMALL, "intermediate_size": 48, "intermediate_size_mlp": 160, "num_local_experts": 8, "moe_layers": [0, 3],
     "attention_bias": True, "no_rope_layers": [1, 0, 0, 1]},
    {"model_type": "nemotron_h", **NEMOTRON, "hybrid_override_pattern": "M-M*-"},
    {"model_type": "nemotron_h", **NEMOTRON, "hybrid_override_pattern": "M-M*-", "use_conv_bias": False, "attention_bias": True, "mlp_bias": True},
    {"model_type": "nemotron_h", **NEMOTRON, "hybrid_override_pattern": "MEM*E-", "n_routed_experts": 8, "moe_intermediate_size": 48,
     "moe_shared_expert_intermediate_size": 96},
]


def counts(config):
    """Returns the parameters of the model and those of a token."""
    keys = {key: value for key, value in config.items() if key != "model_type"}
    built_as = {"kimi_k2": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    configuration = transformers.AutoConfig.for_model(built_as, **keys)
    with transformers.modeling_utils.torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(configuration)
    every = active = 0
    experts = getattr(configuration, "num_local_experts", None) or getattr(configuration, "n_routed_experts", None) or getattr(configuration, "num_experts", None)
    for name, parameter in model.named_parameters():
        count = parameter.numel()
        every += count
        active += count * configuration.num_experts_per_tok // experts if ".experts." in name else count
    return every, active


def main():
    print("# Written by count_active.py with transformers " + transformers.__version__ + ": parameters, parameters of a token, config.json.")
    for config in CONFIGS:
        print(*counts(config), json.dumps(config))


if __name__ == "__main__":
    main()
