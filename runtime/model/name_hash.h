// Numbers from names, for seeds: what a name stands for draws the same wherever it lies.
#pragma once

#include <cstdint>
#include <string>

namespace pfeife {

/// FNV-1a.
inline std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace pfeife
