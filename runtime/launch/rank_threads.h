// Ranks as threads of one process.
#pragma once

#include <functional>

#include "runtime/transport/transport.h"

namespace pfeife {

/// Runs `body` for every rank on a thread of its own, over an in-process transport; all ranks use
/// the one device, each on a stream of its own, and what they made there is complete on return. The
/// first failure stops all and is thrown.
void run_ranks(std::size_t ranks, at::Device device,
               const std::function<void(RankId, Transport&)>& body);

}  // namespace pfeife
