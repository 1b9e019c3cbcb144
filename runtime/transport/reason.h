// What an exception says to a user, and whose failure it is.
#pragma once

#include <exception>
#include <string>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/ids.h"

namespace pfeife {

/// The failure of a known rank, as all ranks hear of it. The sentence names the rank.
class RankFault : public RuntimeFault {
 public:
  /// `gone`: the rank is only known to be gone; why, another rank or the launcher may know.
  RankFault(RankId rank, const std::string& sentence, bool gone = false)
      : RuntimeFault(sentence), rank_(rank), gone_(gone) {}
  RankId rank() const { return rank_; }
  bool gone() const { return gone_; }

 private:
  RankId rank_;
  bool gone_;
};

/// One line: LibTorch's failures without their stack traces, a lack of memory called so.
std::string reason_of(const std::exception& error);

/// `error` as the failure of `rank` ("rank 1 failed at 1F2: ..."); that of a known rank, which
/// another one passed on, as it is. `at`: what the rank was doing, "" = nothing that has a name.
RankFault rank_fault(const std::exception& error, RankId rank, const std::string& at = "");

}  // namespace pfeife
