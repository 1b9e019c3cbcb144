// Plans for frameworks that have one number of recomputed blocks for all stages.
#pragma once

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Puts other plans in place of the pool's: each stage recomputes its first n numbered blocks
/// (layers.3), or all where it has fewer. n is one number for a plan, the smallest with which it
/// fits; where attention alone is recomputed, it is recomputed in all blocks. Plans without
/// recomputation stay, and so does the pool if nothing fits so. For Problem::recompute of Blocks
/// and Attention; the pool stays with any other.
void make_blocks_equal(const Problem& problem, Pool& pool);

}  // namespace pfeife
