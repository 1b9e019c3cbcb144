// results.md and results.tex: the figures of all plans as tables for documents, a row a case and
// plan.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// A table of GitHub's kind of Markdown. Why a plan is not there, results.json says.
std::string markdown_table(const std::vector<CaseRecord>& cases);

/// A LaTeX tabular for \input; needs no package.
std::string latex_table(const std::vector<CaseRecord>& cases);

}  // namespace pfeife
