// Which documents share a microbatch, where a microbatch takes so many tokens at most. Attention
// costs the squares of lengths, so microbatches of equally many tokens differ by their documents,
// and a schedule may take longer for one grouping than for another. Not planned here: the number of
// microbatches, and documents that are cut.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/ir/model/microbatch_scale.h"

namespace pfeife {

/// Lengths of documents, tokens.
using Documents = std::vector<std::int64_t>;

/// First-fit, what packers of data do: each document in turn joins the first microbatch that has
/// room for it, or opens another. `limit`: tokens of a microbatch, no less than the longest
/// document. Documents times microbatches.
DocumentLengths first_fit(const Documents& documents, std::int64_t limit);

/// The longest document first, each to the microbatch with room that has the least of what is
/// balanced: tokens, or (`squares`) work of attention. Nothing if a document finds no room or a
/// microbatch stays empty.
std::optional<DocumentLengths> balanced_grouping(Documents documents, std::int64_t limit,
                                                 std::size_t microbatches, bool squares);

struct GroupingSearch {
  DocumentLengths grouping;  ///< [microbatch], in the order in which microbatches run
  std::int64_t time = 0;     ///< ns
  std::size_t tried = 0;     ///< groupings
  bool exact = false;        ///< all of them, so that none takes less
};

struct GroupingOptions {
  std::uint64_t seed = 1;
  std::size_t tries = 50'000;  ///< groupings whose time is asked for, at most
};

/// Searches the grouping with the smallest `time` (ns of a step). Which microbatch runs when is
/// part of a grouping. All groupings are tried where they are few enough; else a local search moves
/// one document, exchanges two documents or two microbatches, and starts again from changed copies
/// of the best. `starts`: groupings of the same documents into equally many microbatches, at least
/// one; the result takes no longer than any of them. No microbatch of the result is empty or has
/// more than `limit` tokens. Deterministic.
GroupingSearch search_grouping(const std::vector<DocumentLengths>& starts, std::int64_t limit,
                               const std::function<std::int64_t(const DocumentLengths&)>& time,
                               const GroupingOptions& options = {});

}  // namespace pfeife
