// Which program made a result: digests of its sources, computed when it is built. A result of other
// sources is none of this program's.
#pragma once

namespace pfeife {

/// SHA-256 over the sources of what plans, estimates and simulates; equal for every build of them.
const char* planning_sources();
/// The same of what measures.
const char* runtime_sources();

}  // namespace pfeife
