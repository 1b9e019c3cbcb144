#include "planner/io/files/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "planner/io/files/json_mistake.h"
#include "planner/ir/basics/error.h"

namespace pfeife::json_fields {
namespace {

// One pass over the text before it is parsed: a parser builds a tree many times larger than
// "[[[[..." or "[0,0,0,...".
void check_shape(std::string_view text, const Limits& limits) {
  int depth = 0;
  std::int64_t values = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
        break;
      case '[':
      case '{':
        ++values;
        if (++depth > limits.depth) throw Malformed("values are nested too deeply");
        break;
      case ']':
      case '}':
        --depth;
        break;
      case ',':
        ++values;
        break;
      default:
        break;
    }
    if (values > limits.values) throw Malformed("it holds too many values");
  }
}

[[noreturn]] void throw_expected(const char* what, const Json& found) {
  throw Malformed(std::string("expected ") + what + ", found " + excerpt(found));
}

/// Keeps nothing of a text but where it ceases to be JSON.
class FirstMistake : public nlohmann::json_sax<Json> {
 public:
  std::size_t bytes = 0;  ///< up to the mistake
  std::string read;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    bytes = position, read = token;
    return false;
  }
};

std::string first_mistake(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return "is empty";
  FirstMistake mistake;
  Json::sax_parse(text.begin(), text.end(), &mistake);
  const std::string_view before = text.substr(0, mistake.bytes == 0 ? 0 : mistake.bytes - 1);
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return no_json(stream_all("line ", 1 + std::ranges::count(before, '\n'), ", column ",
                            1 + before.size() - line_begin),
                 mistake.read, mistake.bytes > text.size());
}

}  // namespace

std::string no_json(const std::string& at, std::string_view read, bool ends) {
  if (ends) return "ends at " + at + " in the middle of a JSON value";
  constexpr std::size_t kShown = 30;
  const bool cut = read.size() > kShown;
  if (cut) read.remove_prefix(read.size() - kShown);
  return "is no JSON at " + at +
         (read.empty() ? ""
                       : ": found '" + std::string(cut ? "..." : "") + std::string(read) + "'");
}

Json parse(std::string_view text, const Limits& limits) {
  check_shape(text, limits);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception&) {
    throw Malformed(first_mistake(text));
  }
}

const Json& field(const Json& object, const char* key) {
  if (!object.is_object()) throw_expected("an object", object);
  const auto found = object.find(key);
  if (found == object.end()) throw Malformed(std::string("key '") + key + "' is missing");
  return *found;
}

const Json* optional_field(const Json& object, const char* key) {
  if (!object.is_object()) throw_expected("an object", object);
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& array(const Json& value) {
  if (!value.is_array()) throw_expected("a list", value);
  return value;
}

const Json& object(const Json& value) {
  if (!value.is_object()) throw_expected("an object", value);
  return value;
}

const std::string& text(const Json& value) {
  if (!value.is_string()) throw_expected("a string", value);
  return value.get_ref<const std::string&>();
}

bool truth(const Json& value) {
  if (!value.is_boolean()) throw_expected("true or false", value);
  return value.get<bool>();
}

std::int64_t integer(const Json& value) {
  const bool too_large =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || too_large) throw_expected("a 64-bit integer", value);
  return value.get<std::int64_t>();
}

double number(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    throw_expected("a finite number", value);
  return value.get<double>();
}

std::pair<const std::string&, const Json&> tagged(const Json& value) {
  if (!value.is_object() || value.size() != 1) throw_expected("an object of one key", value);
  return {value.begin().key(), value.begin().value()};
}

std::string excerpt(const Json& value) {
  if (value.is_object() && value.size() > 3)
    return "an object of " + std::to_string(value.size()) + " keys";
  if (value.is_array() && value.size() > 8)
    return "a list of " + std::to_string(value.size()) + " values";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace pfeife::json_fields
