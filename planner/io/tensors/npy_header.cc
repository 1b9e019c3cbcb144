#include "planner/io/tensors/npy_header.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/io/files/open_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 12> kNpyTypes{{
    {"|u1", DType::UInt8},
    {"|i1", DType::Int8},
    {"<i2", DType::Int16},
    {"<i4", DType::Int32},
    {"<i8", DType::Int64},
    {"<u2", DType::UInt16},
    {"<f2", DType::Float16},
    {"<f4", DType::Float32},
    {"<f8", DType::Float64},
    {"|b1", DType::Bool},
    {"<c8", DType::Complex64},
    {"<c16", DType::Complex128},
}};

/// Walks over the header: a Python dictionary of a string, a truth value and a tuple of numbers.
class Words {
 public:
  Words(std::string_view text, const std::filesystem::path& file) : text_(text), file_(file) {}

  [[noreturn]] void fail(const std::string& why) const { throw ConfigError({file_.string()}, why); }

  /// True and past it if `word` comes next.
  bool next(std::string_view word) {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n'))
      text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!next(word)) fail("the header is not one of a .npy file: expected " + std::string(word));
  }
  std::string_view quoted() {
    expect("'");
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) fail("the header of the .npy file does not end");
    return std::exchange(text_, text_.substr(end + 1)).substr(0, end);
  }
  std::int64_t number() {
    next("");
    std::int64_t value = 0;
    bool any = false;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9') {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, text_.front() - '0', &value))
        fail("a size that is no number of elements");
      text_.remove_prefix(1);
      any = true;
    }
    if (!any) fail("the header is not one of a .npy file: expected a number");
    return value;
  }

 private:
  std::string_view text_;
  std::filesystem::path file_;
};

DType type_of(std::string_view name, const Words& words) {
  for (const auto& [text, type] : kNpyTypes)
    if (name == text) return type;
  if (name.starts_with(">")) words.fail("is big endian; save a.astype(a.dtype.newbyteorder('<'))");
  words.fail("has elements of type " + std::string(name.substr(0, 20)) +
             ", which no tensor has; convert them with astype");
}

NpyHeader parse_header(std::string_view text, const std::filesystem::path& file) {
  Words words(text, file);
  NpyHeader header;
  std::optional<DType> type;
  bool shape = false, order = false;
  words.expect("{");
  while (!words.next("}")) {
    const std::string_view key = words.quoted();
    words.expect(":");
    if (key == "descr") {
      type = type_of(words.quoted(), words);
    } else if (key == "fortran_order") {
      if (words.next("True"))
        words.fail("is stored column by column; save numpy.ascontiguousarray(a)");
      words.expect("False");
      order = true;
    } else if (key == "shape") {
      words.expect("(");
      while (!words.next(")")) {
        header.sizes.push_back(words.number());
        if (header.sizes.size() > 32) words.fail("has more than 32 dimensions");
        if (!words.next(",")) {
          words.expect(")");
          break;
        }
      }
      shape = true;
    } else {
      words.fail("has an unknown key in its header");
    }
    if (!words.next(",")) {
      words.expect("}");
      break;
    }
  }
  if (!type || !shape || !order) words.fail("lacks descr, fortran_order or shape in its header");
  header.dtype = *type;
  header.bytes = static_cast<std::uint64_t>(element_size(*type).value);
  for (const std::int64_t size : header.sizes)
    if (__builtin_mul_overflow(header.bytes, static_cast<std::uint64_t>(size), &header.bytes))
      words.fail("a shape that is no number of elements");
  return header;
}

}  // namespace

NpyHeader read_npy_header(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& why) { throw ConfigError({file.string()}, why); };
  const OpenFile opened(file);
  const std::string start = opened.at(0, 12);
  if (start.size() < 10 || !start.starts_with("\x93NUMPY"))
    fail("is no .npy file; write it with numpy.save");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(start[i]); };
  const int version = byte(6);
  if (version < 1 || version > 3) fail("is a .npy file of version " + std::to_string(version));
  const std::size_t before = version > 1 ? 12 : 10;
  if (start.size() < before) fail("was cut off");
  std::size_t count = 0;
  for (std::size_t i = before; i-- > 8;) count = count << 8 | byte(i);
  if (count > 1'000'000) fail("has a header of " + std::to_string(count) + " bytes");
  const std::string text = opened.at(before, count);
  if (text.size() < count) fail("was cut off");
  NpyHeader header = parse_header(text, file);
  header.begin = before + count;
  const auto size = static_cast<std::uint64_t>(opened.size().value);
  if (size - header.begin < header.bytes)
    fail("was cut off: its shape needs " + std::to_string(header.bytes) + " bytes, it has " +
         std::to_string(size - header.begin));
  return header;
}

}  // namespace pfeife
