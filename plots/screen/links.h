// What links do to a simulated plan, in sentences.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/result/case_record.h"

namespace pfeife {

/// "shared links cost 166.8 ms: ...": if that is a hundredth of the step or more; "" else.
std::string sharing_sentence(const LinksRecord& links);

/// "with links twice as fast the step would take 612.3 ms (-13.5 %), ...": if a faster network
/// would shorten the step by a hundredth or more; "" else.
std::string faster_network_sentence(const LinksRecord& links);

/// What sharing costs the step, the fullest links, and the messages that lose most; nothing of
/// what costs nothing.
std::vector<std::string> links_sentences(const LinksRecord& links);

}  // namespace pfeife
