// What the ranks of a run must have in common, compared over the sockets before anything starts:
// the same program, libraries, model and plan everywhere, and no card twice.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/basics/error.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// A thing that must be equal on all ranks. All three are single lines.
struct RunFact {
  std::string what;   ///< as in "rank 0 has NCCL 2.28.9"; "" = the value says it
  std::string value;  ///< a version, or a digest
  std::string remedy;
};

struct RunFacts {
  std::vector<RunFact> equal;
  std::string card;  ///< the rank's own, for all hosts; "" = none, or one that ranks share
};

/// Every rank must call it; all return or all throw. ConfigError that names the first rank that
/// differs from rank 0, or two ranks on one card.
void require_agreement(Transport& transport, const RunFacts& facts);

/// Facts of this program and of LibTorch.
std::vector<RunFact> program_facts();

}  // namespace pfeife
