// Certificates judged on several threads.
#pragma once

#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {

/// The verdict of certify(), whatever the number of threads; only that proofs behind a refused one
/// are looked at, too. The proofs of a certificate speak of a schedule each and stand on their own,
/// so each is judged as a certificate of its own.
Verdict certify_parallel(const Certificate& certificate, std::size_t threads);

}  // namespace pfeife::tool
