#include "planner/io/tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/io/files/json_fields.h"
#include "planner/io/files/open_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using namespace json_fields;
using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as the reference implementation

constexpr std::array<std::pair<DType, const char*>, 13> kTypes{{
    {DType::UInt8, "U8"},
    {DType::Int8, "I8"},
    {DType::Int16, "I16"},
    {DType::Int32, "I32"},
    {DType::Int64, "I64"},
    {DType::Float16, "F16"},
    {DType::Float32, "F32"},
    {DType::Float64, "F64"},
    {DType::Bool, "BOOL"},
    {DType::BFloat16, "BF16"},
    {DType::UInt16, "U16"},
    {DType::Float8E4M3, "F8_E4M3"},
    {DType::Float8E5M2, "F8_E5M2"},
}};

std::string name_of(DType dtype) {
  for (const auto& [type, name] : kTypes)
    if (type == dtype) return name;
  throw RuntimeFault(to_string(dtype) + " tensors have no form in safetensors");
}

DType type_of(const std::string& name) {
  for (const auto& [type, found] : kTypes)
    if (name == found) return type;
  throw Malformed("unknown type of element '" + name + "'");
}

/// Empty if the product does not fit.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& sizes) {
  std::uint64_t bytes = static_cast<std::uint64_t>(element_size(dtype).value);
  for (const std::int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
      return {};
  return bytes;
}

SafetensorsEntry entry_of(const std::string& name, const Json& json, std::uint64_t data) {
  SafetensorsEntry entry{name, type_of(text(field(json, "dtype"))), {}, 0, 0};
  for (const Json& size : array(field(json, "shape"))) entry.sizes.push_back(integer(size));
  const Json& offsets = array(field(json, "data_offsets"));
  const std::int64_t begin = offsets.size() == 2 ? integer(offsets[0]) : -1,
                     end = offsets.size() == 2 ? integer(offsets[1]) : -1;
  if (begin < 0 || end < begin) throw Malformed("'" + name + "' lies nowhere");
  entry.begin = data + static_cast<std::uint64_t>(begin);
  entry.bytes = static_cast<std::uint64_t>(end - begin);
  if (bytes_of(entry.dtype, entry.sizes) != entry.bytes)
    throw Malformed("'" + name + "' has " + std::to_string(entry.bytes) +
                    " bytes, which is not what its shape needs");
  return entry;
}

SafetensorsHeader header_of(const std::string& json, std::uint64_t file_bytes) {
  const std::uint64_t data = 8 + json.size();
  SafetensorsHeader header;
  const Json root = parse(json);
  for (const auto& [name, value] : object(root).items()) {
    if (name != "__metadata__") {
      header.entries.push_back(entry_of(name, value, data));
      continue;
    }
    for (const auto& [key, word] : object(value).items()) header.metadata[key] = text(word);
  }
  std::ranges::sort(header.entries, {}, [](const SafetensorsEntry& e) {
    return std::pair{e.begin, e.begin + e.bytes};
  });
  std::uint64_t at = data;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != at) throw Malformed("'" + entry.name + "' does not follow the one before");
    at += entry.bytes;
  }
  if (at != file_bytes)
    throw Malformed(std::to_string(at) + " bytes expected, the file has " +
                    std::to_string(file_bytes) + ": it was cut off, or is damaged");
  return header;
}

}  // namespace

std::string safetensors_header(SafetensorsHeader& header) {
  OrderedJson root = OrderedJson::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  std::uint64_t at = 0;
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin = at;
    entry.bytes = bytes_of(entry.dtype, entry.sizes).value();
    at += entry.bytes;
    root[entry.name] = {{"dtype", name_of(entry.dtype)},
                        {"shape", entry.sizes},
                        {"data_offsets", {entry.begin, at}}};
  }
  std::string json = root.dump(-1, ' ', false, Json::error_handler_t::replace);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  for (SafetensorsEntry& entry : header.entries) entry.begin += 8 + json.size();
  return bytes + json;
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& file) {
  const OpenFile opened(file);
  const auto size = static_cast<std::uint64_t>(opened.size().value);
  const std::string length = opened.at(0, 8);
  std::uint64_t count = 0;
  for (std::size_t i = length.size(); i-- > 0;)
    count = count << 8 | static_cast<unsigned char>(length[i]);
  if (length.size() < 8 || count > kLargestHeader || count + 8 > size)
    throw ConfigError({file.string()},
                      "is no safetensors file, or was cut off; copy it again, or save it again");
  const std::string json = opened.at(8, count);
  try {
    return header_of(json, size);
  } catch (const Malformed& malformed) {
    throw ConfigError({file.string()},
                      stream_all(malformed.what(), "; copy the file again, or save it again"));
  }
}

std::string safetensors_index(const std::map<std::string, std::string>& file_of_tensor,
                              std::uint64_t total_bytes) {
  OrderedJson root;
  root["metadata"]["total_size"] = total_bytes;
  root["weight_map"] = OrderedJson::object();
  for (const auto& [tensor, file] : file_of_tensor) root["weight_map"][tensor] = file;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pfeife
