// results.tex: whatever texts a case has, LaTeX reads them as a table. Read here by the few rules
// that count; by pdflatex where one is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "experiments/show/table_files.h"
#include "plots/screen/columns.h"
#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

/// What is wrong with a tabular, by LaTeX's rules; "" if nothing is.
std::string fault(const std::string& text) {
  static const std::set<std::string> known{
      "begin",    "end",         "toprule",        "midrule",      "bottomrule", "multirow",
      "textbf",   "multicolumn", "dagger",         "footnotesize", "rlap",       "textasciicircum",
      "textless", "textgreater", "textasciitilde", "textbackslash"};
  std::vector<std::string> environments;
  int depth = 0;
  bool math = false;
  std::size_t columns = 0, cells = 1;
  // The argument in braces from `at` on.
  const auto argument = [&](std::size_t at) {
    return text[at] == '{' ? text.substr(at + 1, text.find('}', at) - at - 1) : std::string("?");
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '\\' && i + 1 < text.size() &&
               !std::isalpha(static_cast<unsigned char>(text[i + 1]))) {
      if (text[++i] != '\\') {
        if (std::string("&%$#_{}").find(text[i]) == std::string::npos)
          return "escaped " + text.substr(i, 1);
        continue;
      }
      if (cells != columns || depth != 0) return "a row of " + std::to_string(cells) + " cells";
      cells = 1;
    } else if (c == '\\') {
      std::size_t end = i + 1;
      while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]))) ++end;
      const std::string name = text.substr(i + 1, end - i - 1);
      if (!known.contains(name)) return "\\" + name;
      if (name == "begin") {
        environments.push_back(argument(end));
        const std::size_t spec = text.find('}', end) + 1;
        columns = argument(spec).size();
      } else if (name == "end") {
        if (environments.empty() || environments.back() != argument(end)) return "\\end";
        environments.pop_back();
      } else if (name == "multicolumn") {
        cells += std::stoul(argument(end)) - 1;
      }
      i = end - 1;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth < 0) return "a brace that closes nothing";
    } else if (c == '&') {
      if (depth != 0) return "& in braces";
      ++cells;
    } else if (c == '$') {
      math = !math;
    } else if (!math && (c == '^' || c == '_' || c == '#' || c == '~')) {
      return "outside of formulas: " + std::string(1, c);
    }
  }
  if (depth != 0 || math || !environments.empty()) return "something does not end";
  return columns == 0 ? "no table" : "";
}

/// Cases whose names are any printable characters.
std::vector<CaseRecord> any_cases(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<CaseRecord> cases;
  for (unsigned c = 0; c <= random() % 3; ++c) {
    CaseRecord& record = cases.emplace_back();
    for (unsigned p = 0; p <= random() % 3; ++p) {
      PlanRecord& plan = record.plans.emplace_back();
      plan.row.devices = 2 << c, plan.row.microbatches = 8;
      for (int i = 0; i < 12; ++i) plan.row.family += static_cast<char>(' ' + random() % 95);
      plan.row.plan = plan.row.family;
      plan.row.estimate = Nanoseconds{static_cast<std::int64_t>(1'000'000 + random() % 1'000'000)};
      plan.row.samples_per_s = 12.5;
      plan.row.bubble = 0.25;
      plan.peak_memory = {Bytes{static_cast<std::int64_t>(1 + random() % 8) << 30}};
      plan.memory_limit = {Bytes{std::int64_t{4} << 30}};
      plan.row.peak_memory = plan.peak_memory[0], plan.row.memory_limit = plan.memory_limit[0];
      plan.row.feasible = plan.peak_memory[0] <= plan.memory_limit[0];
    }
  }
  return cases;
}

TEST(Latex, TheReaderFindsWhatIsWrong) {
  const std::string good = latex_table(any_cases(1));
  ASSERT_EQ(fault(good), "");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\\end{tabular}", ""},
                                 {"\\toprule", "\\topprule"},
                                 {"step ms", "step & ms"},
                                 {"step ms", "step_ms"},
                                 {"step ms", "{step ms"},
                                 {"step ms", "step} ms"},
                                 {"step ms", "step $ ms"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_NE(fault(bad), "") << to;
  }
}

TEST(Latex, ATableOfAnyTextsIsOneThatLatexReads) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<CaseRecord> cases = any_cases(seed);
    for (const auto& columns : {std::vector<std::string>{}, column_names()}) {
      const std::string table = latex_table(cases, columns);
      EXPECT_EQ(fault(table), "") << seed << "\n" << table;
    }
  }
}

/// What pdflatex says of a document with that body and the packages that a table needs; "" if it
/// makes one.
std::string refusal(const std::string& body) {
  const ScratchFolder folder;
  std::ofstream(folder.path() / "table.tex")
      << "\\documentclass{article}\\usepackage{booktabs,multirow}\\begin{document}\n"
      << body << "\\end{document}\n";
  const std::string command = "cd '" + folder.path().string() +
                              "' && pdflatex -interaction=nonstopmode -halt-on-error table.tex "
                              "> said.txt 2>&1";
  if (std::system(command.c_str()) == 0) return "";
  std::ostringstream said;
  said << std::ifstream(folder.path() / "said.txt").rdbuf();
  return said.str().empty() ? "nothing" : said.str();
}

TEST(Latex, PdflatexMakesADocumentOfIt) {
  if (const std::string why = refusal("Nothing.\n"); !why.empty())
    GTEST_SKIP() << "no pdflatex with booktabs and multirow here (Debian: texlive-latex-extra): "
                 << why;
  EXPECT_EQ(refusal(latex_table(any_cases(3))), "");
}

}  // namespace
}  // namespace pfeife
