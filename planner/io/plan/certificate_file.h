// certificate.txt: a proof as numbers in plain text, self-contained, with a digest in its first
// line so that damage shows.
#pragma once

#include <filesystem>
#include <string>

#include "planner/ir/result/certificate.h"

namespace pfeife {

/// Equal certificates give equal bytes.
std::string certificate_text(const Certificate& certificate);

/// Errors: ConfigError with the line, also if the digest is another one, or if a number points to
/// nothing. Says nothing of the proofs: planner/schedule_tool/certify.h does.
Certificate read_certificate(const std::filesystem::path& file);
/// Reads text as a file is read; `name` is for messages.
Certificate read_certificate_text(const std::string& text, const std::string& name);

}  // namespace pfeife
