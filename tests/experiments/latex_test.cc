// What is for LaTeX, which reads it: results.tex, whatever texts a case has, by the few rules that
// count; that and every kind of figure by pdflatex where one is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "experiments/show/figure.h"
#include "experiments/show/table_files.h"
#include "planner/io/files/yaml.h"
#include "plots/figure/pgf.h"
#include "plots/screen/columns.h"
#include "plots/timeline/timeline.h"
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
      plan.need.allocated = {Bytes{static_cast<std::int64_t>(1 + random() % 8) << 30}};
      plan.need.limit = {Bytes{std::int64_t{4} << 30}};
      plan.row.peak_memory = plan.need.allocated[0], plan.row.memory_limit = plan.need.limit[0];
      plan.row.feasible = plan.need.allocated[0] <= plan.need.limit[0];
    }
  }
  return cases;
}

// A plan that a case cannot have says why, over all columns of figures.
TEST(Latex, ARowWithoutFiguresHasItsReason) {
  std::vector<CaseRecord> cases = any_cases(1);
  PlanRecord& none = cases[0].plans.emplace_back();
  none.row.plan = none.row.family = "zbv", none.row.devices = 2, none.row.microbatches = 8;
  none.reason = "not possible: 50 % of the_stages";
  const std::string latex = latex_table(cases, {"step", "bubble", "peak"});
  EXPECT_EQ(fault(latex), "");
  EXPECT_NE(latex.find("zbv & \\multicolumn{3}{l}{not possible: 50 \\% of the\\_stages} \\\\"),
            std::string::npos)
      << latex;
  EXPECT_NE(markdown_table(cases, {"step", "bubble", "peak"})
                .find("zbv | not possible: 50 % of the\\_stages |  |  |"),
            std::string::npos);
}

// What a gap is over is said with it.
TEST(Latex, TheGapSaysItsClass) {
  std::vector<CaseRecord> cases = any_cases(1);
  ResultRow& row = cases[0].plans[0].row;
  row.plan = "planned", row.lower_bound = *row.estimate, row.gap = 0, row.bound_class = "zb_h1";
  EXPECT_EQ(fault(latex_table(cases)), "");
  EXPECT_NE(latex_table(cases).find("gap: \\% over the bound on estimates of zb\\_h1}"),
            std::string::npos);
  EXPECT_NE(markdown_table(cases).find("; gap: % over the bound on estimates of zb\\_h1"),
            std::string::npos);
  EXPECT_EQ(latex_table(any_cases(1)).find("gap"), std::string::npos);
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

struct Typeset {
  bool is_document = false;
  std::string said;
};

/// What pdflatex makes of `body` in columns 3.3 inches wide. multirow is in a large package of its
/// own (Debian: texlive-latex-extra); where that is missing, a cell of several rows is its text.
Typeset typeset(const std::string& body) {
  const ScratchFolder folder;
  std::ofstream(folder.path() / "page.tex")
      << "\\documentclass[twocolumn]{article}\\usepackage{booktabs,pgf}\n"
         "\\IfFileExists{multirow.sty}{\\usepackage{multirow}}{\\newcommand\\multirow[3]{##3}}\n"
         "\\setlength\\columnsep{0.2in}\\setlength\\textwidth{6.8in}\\setlength\\parindent{0pt}\n"
         "\\begin{document}\n"
      << body << "\\end{document}\n";
  const std::string command = "cd '" + folder.path().string() +
                              "' && pdflatex -interaction=nonstopmode -halt-on-error page.tex "
                              "> said.txt 2>&1";
  const bool is_document = std::system(command.c_str()) == 0;
  std::ostringstream said;
  said << std::ifstream(folder.path() / "said.txt").rdbuf();
  return {is_document, said.str()};
}

bool has_latex() {
  return std::system(
             "command -v pdflatex >/dev/null && kpsewhich booktabs.sty >/dev/null && "
             "kpsewhich pgf.sty >/dev/null") == 0;
}
constexpr const char* kNoLatex =
    "no pdflatex with booktabs and pgf here (Debian: texlive-latex-base, texlive-pictures)";

TEST(Latex, PdflatexMakesADocumentOfTheTable) {
  if (!has_latex()) GTEST_SKIP() << kNoLatex;
  const Typeset page = typeset(latex_table(any_cases(3)));
  EXPECT_TRUE(page.is_document) << page.said;
}

/// Sixteen baselines beside a plan on 4 and 8 devices over 8 and 16 microbatches; one does not fit.
CsvTable sixteen_baselines() {
  std::string text =
      "case,plan,family,devices,microbatches,microbatch_size,simulate_ms,samples_per_s,"
      "lower_bound_ms,reserved_memory_bytes,memory_limit_bytes,feasible\n";
  for (const int devices : {4, 8})
    for (const int n : {8, 16})
      for (int i = 0; i <= 16; ++i) {
        const std::string name = i == 0 ? "planned" : "family_" + std::to_string(i);
        const double step = (n + 2.0 * i) * 40 / devices;
        text += std::to_string(devices) + "x" + std::to_string(n) + "," + name + "," + name + "," +
                std::to_string(devices) + "," + std::to_string(n) + ",1," + std::to_string(step) +
                "," + std::to_string(1000 * n / step) + "," +
                (i == 0 ? std::to_string(step * 0.9) : "") + "," +
                std::to_string((20LL - i) << 30) + "," + std::to_string(19LL << 30) + "," +
                (i == 1 ? "0" : "1") + "\n";
      }
  return CsvTable::parse({"results.csv", text});
}

// TeX's own judgement of width: what is half a point wider than the column is an overfull box.
TEST(Latex, PdflatexSetsEveryKindOfFigureIntoAColumn) {
  if (!has_latex()) GTEST_SKIP() << kNoLatex;
  const CsvTable results = sixteen_baselines();
  std::vector<std::string> drawings;
  for (const char* kind : {"x: microbatches, y: samples_per_s, facet: devices",
                           "x: microbatches, y: memory, where: devices=8", "kind: front",
                           "kind: phase, x: microbatches, y: devices"})
    for (const char* size :
         {"column: true", "width: 3.3in, title: 'a_b | 50 % & {more} #1 $ ~^\\ <2 µs>'"})
      drawings.push_back(
          draw_figure(results,
                      read_figure(YamlDocument::parse(std::string("{") + kind + ", " + size + "}",
                                                      "my.yaml")
                                      .root()))
              .svg);
  Trace step{.ranks = 2};
  for (const std::int64_t rank : {0, 1})
    step.events.push_back({.rank = RankId{rank},
                           .peer = RankId{rank},
                           .cell = forward(StageId{rank}, MicrobatchId{0}),
                           .start = Nanoseconds{rank * 1'000'000},
                           .end = Nanoseconds{(rank + 1) * 1'000'000}});
  drawings.push_back(timeline_svg(step, column_options()));
  std::string body;
  for (const std::string& drawing : drawings) body += plots::pgf_of(drawing) + "\n";
  const Typeset page = typeset(body);
  EXPECT_TRUE(page.is_document) << page.said;
  EXPECT_THAT(page.said, testing::Not(testing::HasSubstr("Overfull")));
  EXPECT_THAT(page.said, testing::Not(testing::HasSubstr("Missing character")));
  TimelineOptions wider = column_options();
  wider.width += 1;
  EXPECT_THAT(typeset(plots::pgf_of(timeline_svg(step, wider))).said,
              testing::HasSubstr("Overfull"));
}

}  // namespace
}  // namespace pfeife
