#include "planner/io/tensors/checkpoint_file.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/json_fields.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

using namespace json_fields;

constexpr std::int64_t kVersion = 1;

std::int64_t count(const Json& root, const char* key) {
  const std::int64_t value = integer(field(root, key));
  if (value < 0) throw Malformed(std::string(key) + " is negative");
  return value;
}

/// Names of files in the same folder.
std::vector<std::string> files(const Json& root, const char* key) {
  std::vector<std::string> names;
  for (const Json& name : array(field(root, key))) {
    if (std::filesystem::path(text(name)).has_parent_path())
      throw Malformed("'" + text(name) + "' is no name of a file beside it");
    names.push_back(text(name));
  }
  return names;
}

}  // namespace

std::string checkpoint_text(const CheckpointInfo& info) {
  nlohmann::ordered_json root;
  root["version"] = kVersion;
  root["model_digest"] = info.model_digest;
  root["optimizer"] = info.optimizer;
  root["steps"] = info.steps;
  root["updates"] = info.updates;
  root["seed"] = std::to_string(info.seed);  // 64 bits without sign: no number of JSON
  root["next_sample"] = info.next_sample;
  root["model"] = info.model;
  root["optimizer_state"] = info.optimizer_state;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& file) {
  try {
    const Json root = parse(read_file(file));
    if (integer(field(root, "version")) != kVersion)
      throw Malformed("a version that this program does not know");
    CheckpointInfo info;
    info.model_digest = text(field(root, "model_digest"));
    info.optimizer = text(field(root, "optimizer"));
    info.steps = count(root, "steps");
    info.updates = count(root, "updates");
    const std::string& seed = text(field(root, "seed"));
    if (seed.empty() || seed.size() > 20 || seed.find_first_not_of("0123456789") != seed.npos)
      throw Malformed("the seed is no number");
    info.seed = std::strtoull(seed.c_str(), nullptr, 10);
    info.next_sample = count(root, "next_sample");
    info.model = files(root, "model");
    info.optimizer_state = files(root, "optimizer_state");
    return info;
  } catch (const Malformed& malformed) {
    throw ConfigError({file.string()}, malformed.what());
  }
}

}  // namespace pfeife
