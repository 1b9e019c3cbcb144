// Files of the studies, which the build embeds.
#pragma once

namespace pfeife {

extern const char* const kPredictions;  ///< studies/published_runs/predictions.csv
extern const char* const kCells;        ///< studies/paper_tables/tables.csv

}  // namespace pfeife
