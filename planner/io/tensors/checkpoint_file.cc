#include "planner/io/tensors/checkpoint_file.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/json_fields.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using namespace json_fields;

constexpr std::int64_t kVersion = 3;  // 1 had no digests, 2 only the name of the optimizer

std::int64_t count(const Json& root, const char* key) {
  const std::int64_t value = integer(field(root, key));
  if (value < 0) throw Malformed(std::string(key) + " is negative");
  return value;
}

void require_plain_name(const std::string& name) {
  if (std::filesystem::path(name).has_parent_path())
    throw Malformed("'" + name + "' is no name of a file beside it");
}

/// Names of files in the same folder.
std::vector<std::string> files(const Json& root, const char* key) {
  std::vector<std::string> names;
  for (const Json& name : array(field(root, key))) {
    require_plain_name(text(name));
    names.push_back(text(name));
  }
  return names;
}

std::map<std::string, std::string> digests(const Json& root) {
  std::map<std::string, std::string> found;
  for (const auto& [name, digest] : object(field(root, "sha256")).items()) {
    require_plain_name(name);
    found[name] = text(digest);
  }
  return found;
}

struct OptimizerNumber {
  const char* key;
  double OptimizerOptions::*place;
};
constexpr OptimizerNumber kNumbers[] = {
    {"learning_rate", &OptimizerOptions::learning_rate},
    {"min_lr", &OptimizerOptions::min_rate},
    {"momentum", &OptimizerOptions::momentum},
    {"beta1", &OptimizerOptions::beta1},
    {"beta2", &OptimizerOptions::beta2},
    {"eps", &OptimizerOptions::epsilon},
    {"weight_decay", &OptimizerOptions::weight_decay},
    {"clip_norm", &OptimizerOptions::clip_norm},
};

nlohmann::ordered_json optimizer_json(const OptimizerOptions& options) {
  nlohmann::ordered_json root;
  root["name"] = to_string(options.kind);
  root["lr_schedule"] = to_string(options.schedule);
  root["warmup_steps"] = options.warmup_steps;
  root["lr_decay_steps"] = options.decay_steps;
  for (const OptimizerNumber& number : kNumbers) root[number.key] = options.*number.place;
  return root;
}

template <class T>
T one_of(const std::vector<T>& known, const Json& name) {
  for (const T& value : known)
    if (to_string(value) == text(name)) return value;
  throw Malformed("'" + text(name) + "' is unknown to this program");
}

OptimizerOptions optimizer_of(const Json& root) {
  OptimizerOptions options;
  options.kind = one_of(runnable_optimizers(), field(root, "name"));
  options.schedule = one_of(rate_schedules(), field(root, "lr_schedule"));
  options.warmup_steps = count(root, "warmup_steps");
  options.decay_steps = count(root, "lr_decay_steps");
  for (const OptimizerNumber& known : kNumbers)
    options.*known.place = number(field(root, known.key));
  return options;
}

/// The text but for its last entry, the digest of the rest.
nlohmann::ordered_json without_own_digest(const CheckpointInfo& info) {
  nlohmann::ordered_json root;
  root["version"] = kVersion;
  root["model_digest"] = info.model_digest;
  root["optimizer"] = optimizer_json(info.optimizer);
  root["steps"] = info.steps;
  root["updates"] = info.updates;
  root["seed"] = std::to_string(info.seed);  // 64 bits without sign: no number of JSON
  root["dataset"] = info.dataset;
  root["samples"] = info.samples;
  root["shuffle"] = info.shuffle;
  root["epoch"] = info.epoch;
  root["next_sample"] = info.next_sample;
  if (info.loss_scale > 0) {
    root["loss_scale"] = info.loss_scale;
    root["good_steps"] = info.good_steps;
  }
  root["model"] = info.model;
  root["optimizer_state"] = info.optimizer_state;
  root["sha256"] = info.digests;
  return root;
}

std::string dumped(const nlohmann::ordered_json& root) {
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string checkpoint_text(const CheckpointInfo& info) {
  nlohmann::ordered_json root = without_own_digest(info);
  root["own_sha256"] = sha256(dumped(root));
  return dumped(root);
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& file) {
  try {
    const std::string written = read_file(file);
    const Json root = parse(written);
    if (const std::int64_t version = integer(field(root, "version")); version != kVersion)
      throw Malformed("version " + std::to_string(version) +
                      " of checkpoints; this program reads " + std::to_string(kVersion));
    CheckpointInfo info;
    info.model_digest = text(field(root, "model_digest"));
    info.optimizer = optimizer_of(object(field(root, "optimizer")));
    info.steps = count(root, "steps");
    info.updates = count(root, "updates");
    const std::string& seed = text(field(root, "seed"));
    if (seed.empty() || seed.size() > 20 || seed.find_first_not_of("0123456789") != seed.npos)
      throw Malformed("the seed is no number");
    info.seed = std::strtoull(seed.c_str(), nullptr, 10);
    info.dataset = text(field(root, "dataset"));
    info.samples = count(root, "samples");
    info.shuffle = truth(field(root, "shuffle"));
    info.epoch = count(root, "epoch");
    info.next_sample = count(root, "next_sample");
    if (root.contains("loss_scale")) {
      info.loss_scale = number(field(root, "loss_scale"));
      info.good_steps = count(root, "good_steps");
      if (!(info.loss_scale > 0)) throw Malformed("the loss scale is not positive");
    }
    info.model = files(root, "model");
    info.optimizer_state = files(root, "optimizer_state");
    info.digests = digests(root);
    if (checkpoint_text(info) != written)
      throw Malformed("is damaged: its text is not what its own_sha256 says");
    return info;
  } catch (const Malformed& malformed) {
    throw ConfigError({file.string()}, stream_all(malformed.what(), "; take another checkpoint"));
  }
}

void require_digests(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto known = info.digests.find(name);
    if (known == info.digests.end())
      throw ConfigError({(folder / name).string()}, "checkpoint.json has no sha256 of the file");
    if (sha256_file(folder / name) != known->second)
      throw ConfigError({(folder / name).string()},
                        "is damaged: its sha256 is not what checkpoint.json says; take another "
                        "checkpoint");
  }
}

}  // namespace pfeife
