#include "planner/io/experiment/allocator_conf.h"

#include <bit>

#include "planner/io/files/quantity.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kLeastSplit = 20;  // MB; PyTorch wants more
constexpr std::int64_t kMostDivisions = 1 << 20;

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw ConfigError({}, "'" + what + "': " + why);
}

void set(const std::string& key, const std::string& value, AllocatorSettings& settings) {
  const std::string both = key + ":" + value;
  const auto number = parse_integer(value);
  if (key == "expandable_segments") {
    if (value != "True" && value != "False") refuse(both, "expected True or False");
    settings.expandable_segments = value == "True";
  } else if (key == "max_split_size_mb") {
    if (!number || *number <= kLeastSplit || *number > 1 << 20)
      refuse(both, "expected a number of MiB above " + std::to_string(kLeastSplit));
    settings.max_split_size = *number * kMiB;
  } else if (key == "roundup_power2_divisions") {
    if (!number || *number < 1 || *number > kMostDivisions ||
        !std::has_single_bit(static_cast<std::uint64_t>(*number)))
      refuse(both, "expected a power of two");
    settings.roundup_power2_divisions = *number;
  } else {
    refuse(both,
           "the model of the allocator knows expandable_segments, max_split_size_mb and "
           "roundup_power2_divisions; leave it out");
  }
}

}  // namespace

AllocatorSettings parse_allocator(const std::string& text) {
  AllocatorSettings settings;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos)
      refuse(entry, "expected settings as PYTORCH_ALLOC_CONF has them, expandable_segments:True");
    set(entry.substr(0, colon), entry.substr(colon + 1), settings);
    begin = end + 1;
  }
  if (settings.expandable_segments && settings.max_split_size)
    refuse(text,
           "with both, what PyTorch reserves grows without end (github.com/pytorch/pytorch, issue "
           "123548); take expandable_segments:True alone");
  return settings;
}

std::string allocator_text(const AllocatorSettings& settings) {
  std::string text;
  const auto add = [&](const std::string& entry) { text += (text.empty() ? "" : ",") + entry; };
  if (settings.expandable_segments) add("expandable_segments:True");
  if (settings.max_split_size)
    add("max_split_size_mb:" + std::to_string(settings.max_split_size->value / kMiB.value));
  if (settings.roundup_power2_divisions > 1)
    add("roundup_power2_divisions:" + std::to_string(settings.roundup_power2_divisions));
  return text;
}

Kind<std::optional<AllocatorSettings>> allocator_kind() {
  return {"`default`, `none`, or settings such as `expandable_segments:True`",
          [](const YamlNode& node) -> std::optional<AllocatorSettings> {
            const std::string text = node.as_string();
            if (text == "none") return std::nullopt;
            if (text == "default") return AllocatorSettings{};
            try {
              return parse_allocator(text);
            } catch (const ConfigError& error) {
              node.fail(error.what());
            }
          },
          [](const std::optional<AllocatorSettings>& settings) {
            if (!settings) return yaml_scalar("none");
            const std::string text = allocator_text(*settings);
            return text.empty() ? yaml_scalar("default") : yaml_string(text);
          },
          false,
          {},
          kTextSchema};
}

}  // namespace pfeife
