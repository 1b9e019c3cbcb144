// certificate.txt: proofs as numbers in plain text, self-contained, with a digest in its first line
// so that damage shows. One problem, or several that do the same work (where something was open),
// the plan's own first; models and clusters that are equal are written once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/ir/certificate.h"

namespace pfeife {

/// Equal certificates give equal bytes. At least one.
std::string certificate_text(const std::vector<Certificate>& certificates);

/// At least one. Errors: ConfigError with the line, also if the digest is another one, or if a
/// number points to nothing. Says nothing of the proofs: planner/schedule_tool/certify.h does.
std::vector<Certificate> read_certificate(const std::filesystem::path& file);
/// Likewise; `name` is for messages.
std::vector<Certificate> read_certificate_text(const std::string& text, const std::string& name);

}  // namespace pfeife
