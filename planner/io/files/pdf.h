// PDFs of drawings, made by whatever converter is installed.
#pragma once

#include <filesystem>
#include <string>

namespace pfeife {

/// Makes `pdf` of `svg`, as large as the drawing, and returns the name of the program that made it:
/// the first of rsvg-convert, inkscape, cairosvg and chromium that is installed. Errors:
/// RuntimeFault if none is, which says what to install, or if the program fails.
std::string write_pdf(const std::filesystem::path& svg, const std::filesystem::path& pdf);

}  // namespace pfeife
