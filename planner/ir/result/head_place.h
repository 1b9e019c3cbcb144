// What the two places of the output layer are called where a case leaves them open (plan.head:
// auto).
#pragma once

namespace pfeife {

inline constexpr const char* kHeadOnLastRank = "output layer on the last rank";
inline constexpr const char* kHeadOnAllRanks = "output layer on all ranks";

}  // namespace pfeife
