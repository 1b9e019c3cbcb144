// results.md and results.tex: the figures of all plans as tables for documents, a row a case and
// plan.
#pragma once

#include <string>
#include <vector>

#include "planner/io/results/results.h"

namespace pfeife {

/// A table of GitHub's kind of Markdown. A plan that is not there has its reason in place of
/// figures. `columns`: names of columns (plots/screen/columns.h), empty = the usual ones.
std::string markdown_table(const std::vector<CaseRecord>& cases,
                           const std::vector<std::string>& columns = {});

/// A LaTeX tabular for \input, which needs booktabs and multirow: the plans of a case grouped, of
/// the fastest that fits the step in bold. Its first line says whether it fits a column of text or
/// asks for table*.
std::string latex_table(const std::vector<CaseRecord>& cases,
                        const std::vector<std::string>& columns = {});

}  // namespace pfeife
