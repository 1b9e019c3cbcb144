// pfeife-exp VERB ...: what is asked of batches whose documents are known.
#pragma once

#include <string>
#include <vector>

namespace pfeife {

/// `pfeife-exp pack CONFIG --limit TOKENS [OPTION...]`
int pack_batch(const std::vector<std::string>& arguments);

}  // namespace pfeife
