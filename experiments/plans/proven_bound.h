// The bound of a search is raised to what its certificate proves.
#pragma once

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Weights may prove more together than the search says that they prove: the highest bound that the
/// judge accepts becomes the certificate's and the answer's. Nothing happens where that would take
/// the judge long, where the bound also holds for what has no certificate, or if it is the best
/// plan's time already.
void raise_to_proven(EvaluatedCase& evaluated, std::size_t threads);

}  // namespace pfeife
