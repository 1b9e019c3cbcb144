// The one wording of text that is no JSON, for readers of this folder.
#pragma once

#include <string>
#include <string_view>

namespace pfeife::json_fields {

/// "is no JSON at line 2, column 9: found '"a": tru}'", or that it ends too early. `at`: the place,
/// as "line 2, column 9" or "byte 27"; `read`: what the parser took last. Whoever reads adds what
/// to do.
std::string no_json(const std::string& at, std::string_view read, bool ends);

}  // namespace pfeife::json_fields
