// The tables of configs/reference and of the READMEs beside it, printed from the lists of fields
// that read the files.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pfeife {

/// Name and Markdown of each table. Where a page has "<!-- table NAME -->", the table stands up to
/// "<!-- end -->".
std::vector<std::pair<std::string, std::string>> reference_tables();

/// The page with these tables in their places. Errors: ConfigError for a name that there is not, or
/// a table without an end.
std::string with_tables(const std::string& page,
                        const std::vector<std::pair<std::string, std::string>>& tables);

}  // namespace pfeife
