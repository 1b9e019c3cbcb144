// What torch computed for the models of a folder of tests/data/models, as its script stored it.
#pragma once

#include <map>
#include <string>

#include "runtime/model/safetensors_file.h"
#include "tests/runtime/pipelines.h"

namespace pfeife::testing {

/// By the names that follow "MODEL." in the folder's expected.safetensors.
inline std::map<std::string, at::Tensor> stored_values(const std::string& folder,
                                                       const std::string& model) {
  const SafetensorsFile file(source_folder() / folder / "expected.safetensors");
  std::map<std::string, at::Tensor> found;
  for (const SafetensorsEntry& entry : file.header().entries)
    if (entry.name.starts_with(model + "."))
      found[entry.name.substr(model.size() + 1)] = file.tensor(entry).clone();
  return found;
}

}  // namespace pfeife::testing
