// Seeded mutations of valid inputs: bytes, text, JSON trees, entries of ZIP archives.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace pfeife {

/// Equal seeds give equal mutations, on every platform.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// One of `seeds` after one to four changes of the kinds that fit, or now and then random bytes.
  std::string mutate(const std::vector<std::string>& seeds, InputKind kind);

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[below(list.size())];
  }

  std::string random_bytes();
  void change_bytes(std::string& bytes);
  void change_text(std::string& text);
  void copy_word(std::string& text);
  void replace_number(std::string& text);
  void change_lines(std::string& text);
  void change_json(std::string& text);
  void change_zip(std::string& bytes);

  std::mt19937_64 random_;
};

}  // namespace pfeife
