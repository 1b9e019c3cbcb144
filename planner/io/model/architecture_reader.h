// An architecture file: a transformer by its figures. The keys are explained in
// configs/architectures/README.md.
#pragma once

#include <filesystem>

#include "planner/io/files/fields.h"
#include "planner/ir/model/architecture.h"

namespace pfeife {

const FieldList<Architecture>& architecture_fields();
/// By its name, *.yaml or *.json.
bool is_architecture(const std::filesystem::path& file);
/// A file of that kind, or a config.json of Hugging Face (hugging_face.h).
/// Errors: ConfigError with the place, for unknown keys and for figures that do not fit each other.
Architecture read_architecture(const std::filesystem::path& file);

}  // namespace pfeife
