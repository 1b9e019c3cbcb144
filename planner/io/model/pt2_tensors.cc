#include <nlohmann/json.hpp>

#include "planner/io/files/json_fields.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using json_fields::Json;
using json_fields::Malformed;

constexpr std::int64_t kStridedLayout = 7;
constexpr std::size_t kMostDimensions = 64;
constexpr const char* kLargestText = "16 TiB";

/// A size, stride or offset in elements. Bounded, so that sums of a few of them do not overflow.
std::int64_t read_extent(const Json& json, BatchSymbol& batch) {
  const std::int64_t extent = batch.bind(json);
  if (extent < 0) throw Malformed(stream_all("negative size, stride or offset ", extent));
  if (extent > kLargestTensor.value)
    throw Malformed(stream_all("size, stride or offset ", extent, ", more than ", kLargestText));
  return extent;
}

std::vector<std::int64_t> read_extents(const Json& list, BatchSymbol& batch) {
  if (json_fields::array(list).size() > kMostDimensions)
    throw Malformed(stream_all("a tensor of ", list.size(), " dimensions"));
  std::vector<std::int64_t> extents;
  for (const Json& extent : list) extents.push_back(read_extent(extent, batch));
  return extents;
}

void check_bytes(const TensorType& type) {
  std::int64_t bytes = element_size(type.dtype).value;
  for (const std::int64_t size : type.sizes) {
    if (size == 0) return;
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kLargestTensor.value)
      throw Malformed(stream_all("a tensor of more than ", kLargestText));
  }
}

// Two parameters at one place that are not one tensor: weights that overlap, or the archive torch
// writes for fake ones.
void check_overlaps(const std::map<std::string, std::string>& place_of_name) {
  std::map<std::string, const std::string*> shape_at;
  for (const auto& [name, place] : place_of_name) {
    const std::string start = place.substr(0, place.find('\n'));
    const auto [found, fresh] = shape_at.emplace(start, &place);
    if (!fresh && *found->second != place)
      throw Malformed("parameters of different shapes begin at " + start + ", among them '" + name +
                      "'; torch.export.save writes this for fake weights: export with "
                      "configs/models/export_models.py "
                      "--module file.py:function, which keeps them apart");
  }
}

}  // namespace

DType dtype_of_code(std::int64_t code) {
  switch (code) {
    case 1:
      return DType::UInt8;
    case 2:
      return DType::Int8;
    case 3:
      return DType::Int16;
    case 4:
      return DType::Int32;
    case 5:
      return DType::Int64;
    case 6:
      return DType::Float16;
    case 7:
      return DType::Float32;
    case 8:
      return DType::Float64;
    case 9:
      return DType::Complex32;
    case 10:
      return DType::Complex64;
    case 11:
      return DType::Complex128;
    case 12:
      return DType::Bool;
    case 13:
      return DType::BFloat16;
    case 28:
      return DType::UInt16;
    case 29:
      return DType::Float8E4M3;
    case 30:
      return DType::Float8E5M2;
    default:
      throw Malformed(stream_all("unknown dtype ", code));
  }
}

TensorType read_tensor_type(const Json& meta, BatchSymbol& batch) {
  using json_fields::field;
  if (const std::int64_t layout = json_fields::integer(field(meta, "layout"));
      layout != kStridedLayout)
    throw Malformed(stream_all("layout ", layout, "; only dense (strided) tensors are understood"));
  TensorType type;
  type.dtype = dtype_of_code(json_fields::integer(field(meta, "dtype")));
  type.sizes = read_extents(field(meta, "sizes"), batch);
  type.strides = read_extents(field(meta, "strides"), batch);
  type.storage_offset = read_extent(field(meta, "storage_offset"), batch);
  if (type.strides.size() != type.sizes.size())
    throw Malformed(stream_all(type.sizes.size(), " sizes but ", type.strides.size(), " strides"));
  check_bytes(type);
  return type;
}

ParameterPlaces::ParameterPlaces(const Json& weights_config) {
  using namespace json_fields;
  const Json& config = object(field(weights_config, "config"));
  for (const auto& [name, entry] : config.items()) {
    if (!truth(field(entry, "is_param"))) continue;
    const Json& meta = field(entry, "tensor_meta");
    place_of_name_[name] = stream_all(text(field(entry, "path_name")), " at element ",
                                      integer(field(field(meta, "storage_offset"), "as_int")), "\n",
                                      field(meta, "sizes").dump(), field(meta, "strides").dump());
  }
  check_overlaps(place_of_name_);
}

const std::string& ParameterPlaces::at(const std::string& name) const {
  const auto found = place_of_name_.find(name);
  if (found == place_of_name_.end())
    throw Malformed("parameter '" + name + "' is not among the archive's weights");
  return found->second;
}

}  // namespace pfeife
