#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/io/files/json_fields.h"
#include "planner/io/model/pt2_parts.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using json_fields::Json;
using json_fields::Malformed;

// A number, or one of the three that JSON lacks.
double read_float(const Json& value) {
  if (!value.is_string()) return json_fields::number(value);
  const std::string& text = json_fields::text(value);
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  throw Malformed("'" + text.substr(0, 40) + "' is no number");
}

std::int64_t read_open_int(const Json& value, Pt2Names& names) {
  const auto [tag, content] = json_fields::tagged(value);
  if (tag == "as_int") return json_fields::integer(content);
  if (tag == "as_name") return names.size(json_fields::text(content));
  throw Malformed("an integer must be as_int or as_name, found " + tag);
}

std::optional<ValueId> read_optional_tensor(const Json& value, const Pt2Names& names) {
  const auto [tag, content] = json_fields::tagged(value);
  if (tag == "as_none") return std::nullopt;
  if (tag == "as_tensor") return names.tensor(content);
  throw Malformed("an optional tensor must be as_tensor or as_none, found " + tag);
}

MemoryFormat read_memory_format(const Json& value) {
  switch (const std::int64_t code = json_fields::integer(value)) {
    case 1:
      return {0};
    case 2:
      return {2};
    case 3:
      return {3};
    case 4:
      return {1};
    default:
      throw Malformed(stream_all("unknown memory format ", code));
  }
}

Layout read_layout(const Json& value) {
  if (const std::int64_t code = json_fields::integer(value); code != 7)
    throw Malformed(stream_all("layout ", code, "; only dense (strided) tensors are understood"));
  return {0};
}

template <class Read>
auto read_list(const Json& list, const Read& read) {
  std::vector<decltype(read(list))> values;
  for (const Json& item : json_fields::array(list)) values.push_back(read(item));
  return values;
}

using Reader = ArgumentValue (*)(const Json&, Pt2Names&);
constexpr std::pair<const char*, Reader> kReaders[] = {
    {"as_tensor", [](const Json& v, Pt2Names& n) -> ArgumentValue { return n.tensor(v); }},
    {"as_int", [](const Json& v, Pt2Names&) -> ArgumentValue { return json_fields::integer(v); }},
    {"as_ints",
     [](const Json& v, Pt2Names&) -> ArgumentValue { return read_list(v, json_fields::integer); }},
    {"as_sym_int", [](const Json& v, Pt2Names& n) -> ArgumentValue { return read_open_int(v, n); }},
    {"as_sym_ints",
     [](const Json& v, Pt2Names& n) -> ArgumentValue {
       return read_list(v, [&n](const Json& item) { return read_open_int(item, n); });
     }},
    {"as_float", [](const Json& v, Pt2Names&) -> ArgumentValue { return read_float(v); }},
    {"as_floats",
     [](const Json& v, Pt2Names&) -> ArgumentValue { return read_list(v, read_float); }},
    {"as_bool", [](const Json& v, Pt2Names&) -> ArgumentValue { return json_fields::truth(v); }},
    {"as_bools",
     [](const Json& v, Pt2Names&) -> ArgumentValue { return read_list(v, json_fields::truth); }},
    {"as_string", [](const Json& v, Pt2Names&) -> ArgumentValue { return json_fields::text(v); }},
    {"as_strings",
     [](const Json& v, Pt2Names&) -> ArgumentValue {
       return read_list(v, [](const Json& item) { return std::string(json_fields::text(item)); });
     }},
    {"as_none", [](const Json&, Pt2Names&) -> ArgumentValue { return std::monostate{}; }},
    {"as_tensors",
     [](const Json& v, Pt2Names& n) -> ArgumentValue {
       return read_list(v, [&n](const Json& item) { return n.tensor(item); });
     }},
    {"as_optional_tensors",
     [](const Json& v, Pt2Names& n) -> ArgumentValue {
       return read_list(v, [&n](const Json& item) { return read_optional_tensor(item, n); });
     }},
    {"as_scalar_type",
     [](const Json& v, Pt2Names&) -> ArgumentValue {
       return dtype_of_code(json_fields::integer(v));
     }},
    {"as_memory_format",
     [](const Json& v, Pt2Names&) -> ArgumentValue { return read_memory_format(v); }},
    {"as_layout", [](const Json& v, Pt2Names&) -> ArgumentValue { return read_layout(v); }},
    {"as_device",
     [](const Json& v, Pt2Names&) -> ArgumentValue {
       return DeviceArgument{json_fields::text(json_fields::field(v, "type"))};
     }},
};

const char* remedy(const std::string& tag) {
  if (tag.starts_with("as_sym")) return "; export with a fixed batch size (without dynamic_shapes)";
  if (tag == "as_graph") return "; write the model without torch.cond, while_loop and the like";
  return "; write this part of the model with ordinary tensor operations";
}

}  // namespace

ValueId Pt2Names::tensor(const Json& argument) const {
  const std::string& name = json_fields::text(json_fields::field(argument, "name"));
  const auto found = values.find(name);
  if (found == values.end())
    throw Malformed("tensor '" + name + "' is not made by any earlier node");
  return found->second;
}

std::int64_t Pt2Names::size(const std::string& name) {
  if (sizes != nullptr)
    if (const Json* size = json_fields::optional_field(*sizes, name.c_str()))
      return batch.bind(*size);
  throw Malformed("size '" + name + "' is not among sym_int_values");
}

ArgumentValue read_argument(const Json& argument, Pt2Names& names) {
  const auto [tag, value] = json_fields::tagged(argument);
  for (const auto& [known, read] : kReaders)
    if (tag == known) return read(value, names);
  throw Malformed("arguments of kind " + tag + " are not understood" + remedy(tag));
}

}  // namespace pfeife
