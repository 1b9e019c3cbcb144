#include "planner/io/model/pt2_weights.h"

#include <nlohmann/json.hpp>

#include "planner/io/files/json_fields.h"
#include "planner/io/files/zip_archive.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using json_fields::Json;
using json_fields::Malformed;

constexpr std::uint64_t kTableLimit = std::uint64_t{128} << 20;
constexpr std::uint64_t kPackedLimit = std::uint64_t{4} << 30;

/// Elements from the start of the storage to one past the last that the tensor reaches.
std::int64_t reach(const TensorType& type) {
  std::int64_t last = type.storage_offset;
  for (std::size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i] == 0) return 0;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(type.sizes[i] - 1, type.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      throw Malformed("a tensor reaches beyond any file");
  }
  return last + 1;
}

class Collector {
 public:
  Collector(const std::filesystem::path& path) : archive_(path), places_(zip_places(path)) {}

  void add(const std::string& kind, const std::string& table) {
    const std::string folder = folder_of("/data/" + kind + "/" + table);
    if (folder.empty()) return;
    const Json config = json_fields::parse(archive_.read(folder + table, kTableLimit));
    for (const auto& [name, entry] :
         json_fields::object(json_fields::field(config, "config")).items())
      try {
        add_tensor(folder, name, entry);
      } catch (const Malformed& error) {
        throw Malformed("tensor '" + name + "': " + error.what());
      }
  }
  Pt2Weights result() && { return std::move(weights_); }

 private:
  /// The entry's folder with its slash, whatever the archive's top folder is called.
  std::string folder_of(const std::string& ending) const {
    for (const std::string& entry : archive_.entries())
      if (entry.ends_with(ending)) return entry.substr(0, entry.rfind('/') + 1);
    return "";
  }

  void add_tensor(const std::string& folder, const std::string& name, const Json& entry) {
    if (const Json* pickled = json_fields::optional_field(entry, "use_pickle");
        pickled && json_fields::truth(*pickled))
      throw Malformed("is pickled; export plain tensors");
    BatchSymbol batch({});
    Pt2Tensor tensor{read_tensor_type(json_fields::field(entry, "tensor_meta"), batch),
                     storage(folder + json_fields::text(json_fields::field(entry, "path_name")))};
    const Pt2Storage& lies = weights_.storages[tensor.storage];
    const std::int64_t end = reach(tensor.type);
    const auto room = static_cast<std::int64_t>(lies.bytes) / element_size(tensor.type.dtype).value;
    if (lies.bytes > 0 && end > room)
      throw Malformed(
          stream_all("needs ", end, " elements of entry '", lies.entry, "', which has ", room));
    weights_.tensors[name] = std::move(tensor);
  }

  std::size_t storage(const std::string& entry) {
    const auto [known, fresh] = number_of_.try_emplace(entry, weights_.storages.size());
    if (!fresh) return known->second;
    const auto place = places_.find(entry);
    if (place == places_.end()) throw Malformed("its entry '" + entry + "' is missing");
    Pt2Storage storage{entry, place->second.size, {}};
    if (place->second.stored) storage.file_offset = place->second.offset;
    weights_.storages.push_back(std::move(storage));
    return known->second;
  }

  ZipArchive archive_;
  std::map<std::string, ZipPlace> places_;
  std::map<std::string, std::size_t> number_of_;
  Pt2Weights weights_;
};

}  // namespace

bool Pt2Weights::has(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return false;
  return storages[found->second.storage].bytes > 0 || found->second.type.elements() == 0;
}

Pt2Weights read_pt2_weights(const std::filesystem::path& path) {
  Collector collector(path);
  try {
    collector.add("weights", "model_weights_config.json");
    collector.add("constants", "model_constants_config.json");
  } catch (const Malformed& error) {
    throw ConfigError({path.string()}, stream_all(error.what(), "; export the model again"));
  }
  return std::move(collector).result();
}

std::string read_pt2_storage(const std::filesystem::path& path, const Pt2Storage& storage) {
  return ZipArchive(path).read(storage.entry, kPackedLimit);
}

}  // namespace pfeife
