
#include "planner/io/traces/profiler_events.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <string_view>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/json_mistake.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

// A file as it is, or unpacked on the way if it is gzip: read once, from its begin to its end.
class InflatedBuffer : public std::streambuf {
 public:
  explicit InflatedBuffer(const std::filesystem::path& file)
      : name_(file.string()), file_(opened(file), &gzclose_r) {
    if (!file_) throw ConfigError({name_}, "is no file that can be read");
    gzbuffer(file_.get(), kSize);
  }

 protected:
  int_type underflow() override {
    const int count = gzread(file_.get(), buffer_.data(), kSize);
    int problem = Z_OK;
    gzerror(file_.get(), &problem);
    if (problem == Z_BUF_ERROR)
      throw ConfigError({name_}, "the packed file ends too early; copy it again");
    if (count < 0) throw ConfigError({name_}, "the packed file is damaged; copy it again");
    if (count == 0) return traits_type::eof();
    limit_names(std::string_view(buffer_.data(), static_cast<std::size_t>(count)));
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(buffer_[0]);
  }

 private:
  static constexpr unsigned kSize = 1U << 18;
  static constexpr std::size_t kLongestName = std::size_t{1} << 20;  ///< or number, or gap

  static gzFile opened(const std::filesystem::path& file) {
    require_regular_file(file);
    return gzopen(file.c_str(), "rb");
  }
  /// A reader of JSON holds a whole name, and a small packed file may have one of gigabytes.
  void limit_names(std::string_view piece) {
    const std::size_t quote = piece.rfind('"');
    const std::size_t before = unquoted_ + std::min(piece.find('"'), piece.size());
    if (before > kLongestName)
      throw ConfigError({name_},
                        "has more than 1 MiB between two quotes, which no trace of "
                        "torch.profiler has; record it again");
    unquoted_ = quote == std::string_view::npos ? before : piece.size() - quote - 1;
  }

  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, kSize> buffer_{};
  std::size_t unquoted_ = 0;  // bytes since the last quote
};

class InflatedStream : public std::istream {
 public:
  explicit InflatedStream(const std::filesystem::path& file)
      : std::istream(nullptr), buffer_(file) {
    rdbuf(&buffer_);
  }

 private:
  InflatedBuffer buffer_;
};

/// Opens `file`. Memory is a buffer, whatever the size. Reading throws ConfigError where a packed
/// file is damaged or ends too early. Errors: ConfigError if there is no such file.
std::unique_ptr<std::istream> open_inflated(const std::filesystem::path& file) {
  return std::make_unique<InflatedStream>(file);
}

constexpr double kMostMicroseconds = 4e15;  // 126 years, in nanoseconds less than half of 64 bits

constexpr std::int64_t kMost = 4'000'000'000'000'000'000;

/// Microseconds as they are written, "4651776373057.819", to nanoseconds: a double has no room for
/// those of a clock that counts from 1970.
std::optional<Nanoseconds> exact_nanoseconds(const std::string& text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const bool negative = at == 1;
  std::int64_t value = 0;
  int decimals = -1;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && decimals < 0) {
      decimals = 0;
    } else if (text[at] >= '0' && text[at] <= '9') {
      if (decimals == 3) continue;
      value = value * 10 + (text[at] - '0');
      if (decimals >= 0) ++decimals;
      if (value > 400'000'000'000'000'000 && (decimals != 3 || value > kMost)) return std::nullopt;
    } else {  // an exponent
      const double number = std::strtod(text.c_str(), nullptr);
      if (!(std::abs(number) < kMostMicroseconds)) return std::nullopt;
      return Nanoseconds{std::llround(number * 1000)};
    }
  }
  for (decimals = std::max(decimals, 0); decimals < 3; ++decimals)
    if ((value *= 10) > kMost) return std::nullopt;
  return Nanoseconds{negative ? -value : value};
}

/// Follows the parser through the file. Objects and arrays are counted by their depth; the events
/// are at `event_depth_`: in the root, or in its "traceEvents".
class EventHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventHandler(std::string file, std::istream& stream,
               const std::function<void(const ProfilerEvent&)>& visit)
      : file_(std::move(file)), stream_(stream), visit_(visit) {}

  const ProfilerHead& head() const { return head_; }
  bool has_events() const { return events_ > 0; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& value) override {
    if (in_event()) {
      if (key_ == "ph")
        event_.phase = value.size() == 1 ? value[0] : 0;
      else if (key_ == "name")
        event_.name = std::move(value);
      else if (key_ == "cat")
        event_.category = std::move(value);
      else if (key_ == "ts" || key_ == "dur")
        return number(value);
    } else if (in_arguments()) {
      if (key_ == "action")
        event_.action = std::move(value);
      else if (key_ == "name")
        event_.label = std::move(value);
    } else if (in_list(1) && key_ == "Input type") {
      if (event_.type.empty()) event_.type = std::move(value);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == event_depth_) event_ = {};
    if (depth_ == event_depth_ + 1) arguments_ = key_ == "args";
    if (depth_ == 2 && event_depth_ != 2) section_ = key_;
    return shallow();
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_) visit_(event_), ++events_;
    if (depth_ == event_depth_ + 1) arguments_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) event_depth_ = depth_ + 1;
    if (in_list(2) && key_ == "Input Dims" && event_.dims.size() < kMostDims)
      event_.dims.emplace_back();
    return shallow();
  }
  bool end_array() override {
    if (depth_ + 1 == event_depth_) event_depth_ = kNever;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& read,
                   const nlohmann::detail::exception&) override {
    const bool ends = stream_.rdbuf()->sgetc() == std::istream::traits_type::eof();
    const std::string place =
        "byte " + std::to_string(position) +
        (events_ == 0 ? "" : ", behind " + std::to_string(events_) + " events,");
    throw ConfigError({file_},
                      json_fields::no_json(place, read, ends) +
                          (ends ? "; was the program that wrote it stopped?"
                                : "; expected a Chrome trace as torch.profiler exports it"));
  }

 private:
  static constexpr int kNever = 1000, kDeepest = 64;
  static constexpr std::size_t kMostDims = 16;

  bool in_event() const { return depth_ == event_depth_; }
  /// In a list of the arguments, so many brackets deep.
  bool in_list(int brackets) const { return arguments_ && depth_ == event_depth_ + 1 + brackets; }
  bool in_arguments() const { return arguments_ && depth_ == event_depth_ + 1; }
  bool shallow() const {
    if (depth_ > kDeepest) throw ConfigError({file_}, "is nested too deeply for a trace");
    return true;
  }

  /// A whole number that is no time.
  std::int64_t integer(const std::string& text) const {
    return text.size() < 18 ? std::strtoll(text.c_str(), nullptr, 10) : -1;
  }
  Nanoseconds time(const std::string& text) const {
    const auto value = exact_nanoseconds(text);
    if (!value) throw ConfigError({file_}, "a time of " + text + " us");
    return *value;
  }
  bool number(const std::string& text) {
    if (in_event()) {
      if (key_ == "ts")
        event_.start = time(text);
      else if (key_ == "dur")
        event_.duration = time(text);
      else if (key_ == "pid")
        event_.process = integer(text);
      else if (key_ == "tid")
        event_.thread = integer(text);
    } else if (in_arguments() && key_ == "External id") {
      event_.external = integer(text);
    } else if (in_list(2) && key_ == "Input Dims") {
      if (!event_.dims.empty() && event_.dims.back().size() < kMostDims)
        event_.dims.back().push_back(integer(text));
    } else if (depth_ == 1 && key_ == "baseTimeNanoseconds") {
      if (std::abs(std::strtod(text.c_str(), nullptr)) > static_cast<double>(kMost))
        throw ConfigError({file_}, "a baseTimeNanoseconds of " + text);
      head_.base = Nanoseconds{std::strtoll(text.c_str(), nullptr, 10)};
    } else if (depth_ == 2 && section_ == "distributedInfo" && key_ == "rank") {
      head_.rank = integer(text);
    }
    return true;
  }

  std::string file_;
  std::istream& stream_;
  const std::function<void(const ProfilerEvent&)>& visit_;
  ProfilerHead head_;
  ProfilerEvent event_;
  std::string key_, section_;
  int depth_ = 0, event_depth_ = kNever;
  std::int64_t events_ = 0;
  bool arguments_ = false;
};

}  // namespace

ProfilerHead read_profiler_events(const std::filesystem::path& file,
                                  const std::function<void(const ProfilerEvent&)>& visit) {
  const auto stream = open_inflated(file);
  EventHandler handler(file.string(), *stream, visit);
  nlohmann::json::sax_parse(*stream, &handler);
  if (!handler.has_events())
    throw ConfigError({file.string()},
                      "has no \"traceEvents\": expected a Chrome trace as torch.profiler's "
                      "export_chrome_trace writes it");
  return handler.head();
}

}  // namespace pfeife
