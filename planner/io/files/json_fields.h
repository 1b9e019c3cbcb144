// Checked access to parsed JSON, for the readers of this folder only.
//
// What does not hold throws Malformed; whoever knows more of the place (file, node) puts it in
// front and passes on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace pfeife::json_fields {

using Json = nlohmann::json;

class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Limits {
  int depth = 64;                    ///< of arrays and objects in one another
  std::int64_t values = 10'000'000;  ///< commas and brackets, outside of strings
};

/// Parses `text`; Malformed for anything but one JSON value within the limits. Memory is bounded by
/// `limits.values` whatever the text.
Json parse(std::string_view text, const Limits& limits = {});

/// Member `key` of an object.
const Json& field(const Json& object, const char* key);
/// The same, nullptr if it is absent or null.
const Json* optional_field(const Json& object, const char* key);

const Json& array(const Json& value);
const Json& object(const Json& value);
const std::string& text(const Json& value);
bool truth(const Json& value);
/// An integer that fits into 64 bits with sign.
std::int64_t integer(const Json& value);
/// Any finite number.
double number(const Json& value);

/// A union as torch writes it, {"as_int": 3}: its one key and value.
std::pair<const std::string&, const Json&> tagged(const Json& value);

/// Start of the value's text, for messages.
std::string excerpt(const Json& value);

}  // namespace pfeife::json_fields
