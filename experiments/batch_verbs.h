// pfeife-exp VERB ...: what is asked of batches whose documents are known, and of runs whose
// devices fail.
#pragma once

#include <string>
#include <vector>

namespace pfeife {

/// `pfeife-exp pack CONFIG --limit TOKENS [OPTION...]`
int pack_batch(const std::vector<std::string>& arguments);
/// `pfeife-exp batches CONFIG --lengths FILE.csv [OPTION...]`
int plan_for_batches(const std::vector<std::string>& arguments);
/// `pfeife-exp failures CONFIG --save TIME --restart TIME --repair TIME [OPTION...]`
int plan_failures(const std::vector<std::string>& arguments);

}  // namespace pfeife
