// Ranks as processes of one host, joined by Unix domain sockets.
//
// Each pair of ranks has one connection, with a thread that writes and one that reads: sending
// never blocks the rank, and messages arrive while it computes. A rank that goes away without a
// farewell makes every call on the others fail. Not here: other hosts.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/transport.h"

namespace pfeife {

/// Meets the other ranks in `folder`, which must be new and equal for all. Waits at most
/// `patience`. RuntimeFault naming the missing rank.
std::unique_ptr<Transport> join_by_sockets(
    const std::filesystem::path& folder, RankId rank, std::size_t ranks,
    std::chrono::seconds patience = std::chrono::seconds(60));

}  // namespace pfeife
