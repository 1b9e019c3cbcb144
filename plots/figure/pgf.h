// A drawing of plots/figure/svg.h as a PGF picture, for \input in LaTeX (\usepackage{pgf}).
//
// Takes what the drawings here are made of: rect, line, path (M L H V C Z and small letters of
// m l h v z), text, g with translate and rotate. Letters are those of the document, one size each:
// \fontsize{7bp}. Titles (tooltips) and opacity of strokes are left out.
#pragma once

#include <string>
#include <string_view>

namespace pfeife::plots {

/// The \begin{pgfpicture} ... \end{pgfpicture} of a whole document. Errors: InternalError for
/// elements that are none of the above.
std::string pgf_of(std::string_view svg_document);

}  // namespace pfeife::plots
