// Figures of results.csv: what is on which line, where lines change places, what is refused.
#include "experiments/show/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/files/yaml.h"

namespace pfeife {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A row: N microbatches of 2 samples in `step` ms; `bound`, ms: on its class, 0 = none.
std::string row(int microbatches, const std::string& plan, const std::string& family, int step,
                int bound, bool fits = true) {
  return "microbatches=" + std::to_string(microbatches) + "," + plan + ",,[zb_greedy]," + family +
         ",4," + std::to_string(microbatches) + ",2," + std::to_string(step) + "," +
         std::to_string(2000.0 * microbatches / step) + "," +
         (bound > 0 ? std::to_string(bound) : "") + ",1073741824," + (fits ? "1" : "0") + "," +
         (bound > 0 ? "zb_greedy and 1f1b" : "") + "\n";
}

/// Steps of three lines over 8, 16 and 24 microbatches; zbv is faster than 1f1b from 24 on, and of
/// another class than the bound.
CsvTable results(int zbv_of_8 = 130) {
  std::string text =
      "case,plan,calibration,plan.families,family,devices,microbatches,microbatch_size,simulate_ms,"
      "samples_per_s,lower_bound_ms,reserved_memory_bytes,feasible,bound_class\n";
  const int planned[] = {100, 180, 260}, zbv[] = {zbv_of_8, 210, 270}, plain[] = {120, 205, 290};
  for (int i = 0; i < 3; ++i) {
    const int n = 8 * (i + 1);
    text += row(n, "planned", "zb_greedy", planned[i], planned[i] - 10);
    text += row(n, "1f1b", "1f1b", plain[i], planned[i] - 10);
    text += row(n, "zbv", "zbv", zbv[i], 0);
    text += row(n, "gpipe", "gpipe", 50, 0, false);
  }
  return CsvTable::parse({"results.csv", text});
}

FigureSettings settings(const std::string& yaml) {
  return read_figure(YamlDocument::parse(yaml, "my.yaml").root());
}

TEST(SweepFigures, SayWhoIsBestWhatFitsAndWhereLinesChangePlaces) {
  const DrawnFigure figure =
      draw_figure(results(), settings("{x: microbatches, y: samples_per_s}"));
  EXPECT_THAT(figure.sentences, ElementsAre("best that fits: planned (zb_greedy)",
                                            "zbv overtakes 1f1b between 16 and 24 microbatches"));
  for (const char* said :
       {"samples/s, simulated", "does not fit", ">bound of zb_greedy and 1f1b<", ">gpipe<"})
    EXPECT_THAT(figure.svg, HasSubstr(said));
}

// 8 microbatches: 1F1B takes 120 ms, the plan 100, its bound is 90.
TEST(SweepFigures, RatiosAreOfTheCasesOwn1F1BAndBound) {
  const FigureTable table(results());
  const auto of = [&](const std::string& name) {
    return table.figure(settings("{x: microbatches, y: " + name + "}"), "y").values;
  };
  EXPECT_NEAR(*of("of_1f1b")[0], 120, 0.01);
  EXPECT_NEAR(*of("of_1f1b")[1], 100, 0.01);
  EXPECT_NEAR(*of("of_bound")[0], 90, 0.01);
  EXPECT_NEAR(*of("of_bound")[1], 75, 0.01);
  EXPECT_EQ(of("of_bound")[2], std::nullopt) << "zbv is of another class";
  EXPECT_NEAR(*of("step")[0], 100, 0.01);
  EXPECT_NEAR(*of("memory")[0], 1, 1e-9);
  EXPECT_NEAR(*of("tokens_per_s, tokens: 1000")[0], 160, 0.01);  // 160 samples/s of 1000
}

// zbv takes 80 ms, and 90 is the bound on the others: no line, rather than one through zbv.
TEST(SweepFigures, ABoundIsNotDrawnWherePlansOfAnotherClassPassIt) {
  const FigureSettings asked = settings("{x: microbatches, y: samples_per_s}");
  const DrawnFigure figure = draw_figure(results(80), asked);
  EXPECT_THAT(figure.sentences,
              testing::Contains("no bound is drawn: zbv is of another class, and better than it"));
  EXPECT_THAT(figure.svg, Not(HasSubstr("class=\"bound\"")));
  EXPECT_THAT(draw_figure(results(), asked).svg, HasSubstr("class=\"bound\""));
  const DrawnFigure share = draw_figure(results(80), settings("{x: microbatches, y: of_bound}"));
  EXPECT_THAT(share.svg, HasSubstr("throughput, % of the bound of zb_greedy and 1f1b, simulated"));
  EXPECT_THAT(share.sentences,
              testing::Contains("not drawn, of another class than the bound: gpipe, zbv"));
}

TEST(SweepFigures, TheFrontHasWhatNoOtherBeatsInBoth) {
  const DrawnFigure figure =
      draw_figure(results(), settings("{kind: front, where: microbatches=8}"));
  EXPECT_THAT(figure.sentences, ElementsAre("front (x, y): planned (zb_greedy) (1.0, 100.0)"));
}

TEST(SweepFigures, APhaseDiagramCountsTheCellsOfTheFastestThatFits) {
  const DrawnFigure figure =
      draw_figure(results(), settings("{kind: phase, x: microbatches, y: devices}"));
  EXPECT_EQ(figure.sentences.at(0), "fastest that fits: zb_greedy in 3 cells");
  EXPECT_THAT(figure.svg, HasSubstr("percents: how much longer the next family takes"));
  const DrawnFigure narrow =
      draw_figure(results(), settings("{kind: phase, x: microbatches, y: devices, width: 200px}"));
  EXPECT_THAT(narrow.svg, Not(HasSubstr("percents"))) << "no cell has room for any";
}

std::string refusal(const std::string& yaml) {
  try {
    draw_figure(results(), settings(yaml));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepFigures, UnknownNamesAreRefusedWithWhatThereIs) {
  EXPECT_THAT(refusal("{x: microbatch, y: step}"),
              testing::AllOf(HasSubstr("my.yaml:1:5: there is no column 'microbatch', did you mean "
                                       "'microbatches'?"),
                             HasSubstr("plan.families")));
  EXPECT_THAT(refusal("{x: microbatches, y: samples}"),
              testing::AllOf(HasSubstr("my.yaml:1:22"), HasSubstr("use one of step, samples_per_s"),
                             Not(HasSubstr("plan.families"))));
  EXPECT_THAT(refusal("{x: microbatches, y: step, where: devices=5}"),
              HasSubstr("no row has devices '5'; there are 4"));
  EXPECT_THAT(refusal("{x: microbatches, y: tokens_per_s}"), HasSubstr("the tokens of a sample"));
  EXPECT_THAT(refusal("{x: microbatches}"), HasSubstr("which y?"));
  EXPECT_THAT(refusal("{x: microbatches, y: step, width: 3}"),
              HasSubstr("a number without a unit"));
  EXPECT_THAT(refusal("{kind: phase, x: microbatches, y: devices, lines: plan}"),
              HasSubstr("leave `lines` out"));
}

// One line is better at the left, then as good, then worse: they change places once.
TEST(Crossovers, EqualPointsAndWhatDoesNotFitDoNotCount) {
  Chart chart;
  ChartPanel panel;
  panel.lines = {{"a", plots::line_look(0), {{1, 3, true, ""}, {2, 4, true, ""}, {3, 5, true, ""}}},
                 {"b", plots::line_look(1), {{1, 2, true, ""}, {2, 4, true, ""}, {3, 6, true, ""}}},
                 {"c", plots::line_look(2), {{1, 9, false, ""}, {3, 1, true, ""}}}};
  EXPECT_THAT(crossovers(chart, panel, {true, "GiB"}),
              ElementsAre("b overtakes a between 1 and 3 GiB"));
  EXPECT_EQ(leaders(chart, panel, {true, "GiB"}), "best that fits: a up to 2 GiB, b from 3 on");
}

}  // namespace
}  // namespace pfeife
