// SHA-256: what identifies a graph, a profile, a cluster, the inputs of a result.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pfeife {

/// SHA-256 of `bytes`, 64 lower-case hexadecimal digits (FIPS 180-4).
std::string sha256(std::string_view bytes);

/// SHA-256 of a file's content, read in pieces. ConfigError if it cannot be read.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace pfeife
