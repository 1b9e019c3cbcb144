// How much memory of this machine a case takes, before it is computed.
#pragma once

#include "experiments/plans/plan_case.h"

namespace pfeife {

/// Bytes that planning or simulating the case takes, whichever is more, nearly; `threads`: that
/// plan and simulate at once. Of a given plan nothing, which is there already.
Bytes memory_needed(const CaseInputs& inputs, std::size_t threads);

/// Bytes that this process may still take: what the machine has available, within the limits of
/// its control group and its own (ulimit -v).
Bytes memory_available();

/// Refuses a case that takes more than is available, with what takes less. Errors: RefusedWish.
void check_memory(const Request& config, Bytes needed, Bytes available);

/// A sentence about a case that takes so much that it should be known; "" of any other.
std::string memory_note(const Request& config, Bytes needed, Bytes available);

}  // namespace pfeife
