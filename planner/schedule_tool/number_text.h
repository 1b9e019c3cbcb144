// Numbers as the verbs print them.
#pragma once

#include <string>

namespace pfeife::tool {

/// Milliseconds with six digits behind the point, less trailing zeros: "33.25".
std::string ms_text(double ms);
/// "12.3 %".
std::string percent_text(double fraction);

}  // namespace pfeife::tool
