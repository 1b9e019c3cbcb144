// Transformers by their figures, from YAML of our own or a config.json of Hugging Face.
#pragma once

#include <filesystem>

#include "planner/io/files/fields.h"
#include "planner/io/files/yaml.h"
#include "planner/ir/model/architecture.h"

namespace pfeife {

// config.json of a Hugging Face model (transformers) as an architecture.

/// It says a model_type. (JSON is read as YAML, which says where an error is.)
bool is_hugging_face(const YamlNode& root);

/// Reads `root` by its `model_type`: deepseek_v3, glm4_moe, gpt2, gpt_oss, kimi_k2, llama, llama4,
/// llama4_text, minimax_m2, mistral, mixtral, nemotron_h, phi3, qwen2, qwen3, qwen3_moe. Absent
/// fields have the defaults of transformers 5.24. The sequence stays open (max_position_embeddings
/// is what a model can, not what it is trained with), attention is fused. Errors: ConfigError with
/// the place for another model_type, and for what has no price: other activations, quantized
/// weights.
Architecture hugging_face_architecture(const YamlNode& root);

// An architecture file: a transformer by its figures. The keys are explained in
// configs/architectures/README.md.

const FieldList<Architecture>& architecture_fields();
/// By its name, *.yaml or *.json.
bool is_architecture(const std::filesystem::path& file);
/// A file of that kind, or a config.json of Hugging Face.
/// Errors: ConfigError with the place, for unknown keys and for figures that do not fit each other.
Architecture read_architecture(const std::filesystem::path& file);

}  // namespace pfeife
