// A file as it is, or unpacked on the way if it is gzip: read once, from its begin to its end.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>

namespace pfeife {

/// Opens `file`. Memory is a buffer, whatever the size. Reading throws ConfigError where a packed
/// file is damaged or ends too early. Errors: ConfigError if there is no such file.
std::unique_ptr<std::istream> open_inflated(const std::filesystem::path& file);

}  // namespace pfeife
