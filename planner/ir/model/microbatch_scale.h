// How the work of a microbatch compares with the one that a model's costs are given for: real
// batches are packed documents, so that microbatches of a step differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pfeife {

/// Factors of one microbatch's costs. Times of attention take `attention`; all other times, bytes
/// that are saved, temporaries and messages take `linear`. Both are positive.
struct MicrobatchScale {
  double linear = 1;
  double attention = 1;
  double least() const { return linear < attention ? linear : attention; }
  friend auto operator<=>(const MicrobatchScale&, const MicrobatchScale&) = default;
};

/// [microbatch] Token counts of the documents packed into it.
using DocumentLengths = std::vector<std::vector<std::int64_t>>;

/// [microbatch] The scales of packed documents beside a microbatch of `samples` sequences of
/// `tokens` each, all attending to their whole sequence. Documents attend to themselves alone, so
/// linear = sum of lengths / (samples tokens), attention = sum of squares / (samples tokens^2).
/// Padding is not counted: a padded document has its padded length. Linear.
std::vector<MicrobatchScale> scales_of_documents(const DocumentLengths& documents,
                                                 std::int64_t tokens, std::int64_t samples);

/// If every scale is 1 there is nothing to say: returns an empty list, else `scales`.
std::vector<MicrobatchScale> without_equal_ones(std::vector<MicrobatchScale> scales);

/// [microbatch] Which of the distinct scales each has, numbered by first appearance.
std::vector<std::uint32_t> kinds_of(const std::vector<MicrobatchScale>& scales);

/// "1", or "[0.5, 0.25]" where attention has its own.
std::string to_string(const MicrobatchScale& scale);

}  // namespace pfeife
