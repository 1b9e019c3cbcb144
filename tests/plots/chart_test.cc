// Charts: outliers behind a torn line, limits that are seen, letters of one size.
#include "plots/figure/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plots/figure/chart_axis.h"
#include "plots/figure/pgf.h"
#include "tests/plots/table_cells.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 10, 12, 14, 16 GiB, and a line that has `outlier` in all places.
Chart example(double outlier) {
  Chart chart{.x_title = "microbatches", .y_title = "GiB", .limit_name = "limit"};
  ChartPanel panel;
  ChartLine usual{"usual", plots::line_look(0), {}}, other{"other", plots::line_look(1), {}};
  for (int i = 0; i < 4; ++i) {
    usual.points.push_back({8.0 * (i + 1), 10.0 + 2 * i, true, ""});
    other.points.push_back({8.0 * (i + 1), 11.0 + 2 * i, true, ""});
  }
  ChartLine far{"far", plots::line_look(2), {{32, outlier, false, "far away"}}};
  panel.lines = {usual, other, far};
  panel.limit = 15;
  chart.panels = {panel};
  return chart;
}

double top_of(const XmlElement& mark) {
  return std::atof(mark.attribute("d").substr(mark.attribute("d").find(' ')).c_str());
}

TEST(Charts, AnOutlierStandsBehindATornLineWithItsValueAndTheOthersKeepTheirRoom) {
  const XmlElement near = parse_xml(chart_svg(example(17), {})),
                   far = parse_xml(chart_svg(example(880), {}));
  EXPECT_TRUE(by_class(near, "torn").empty());
  EXPECT_EQ(by_class(far, "torn").size(), 1U);
  EXPECT_THAT(all_text(far), HasSubstr("880"));
  EXPECT_THAT(all_text(near), Not(HasSubstr("880")));
  const auto range = [](const XmlElement& root) {
    const auto marks = by_class(root, "mark");
    return top_of(*marks.at(3)) - top_of(*marks.at(6));  // 10 to 16, after the legend's
  };
  EXPECT_GT(std::fabs(range(far)), 0.5 * std::fabs(range(near)));
}

// The line is seen on a ground of any colour if it is seen on its halo, and the halo is on both
// sides of it. The least contrast of graphics is 3 (WCAG 2.1, section 1.4.11).
TEST(Charts, ALimitHasAHaloOnWhichItIsSeen) {
  EXPECT_GE(plots::contrast(plots::kAlarm, plots::kEdge), 3);
  const XmlElement root = parse_xml(chart_svg(example(17), {}));
  const auto limits = by_class(root, "limit"), halos = by_class(root, "halo");
  ASSERT_EQ(limits.size(), 2U);  // one is in the legend
  ASSERT_EQ(halos.size(), limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    for (const char* end : {"x1", "y1", "x2", "y2"})
      EXPECT_EQ(limits[i]->attribute(end), halos[i]->attribute(end));
    EXPECT_EQ(halos[i]->attribute("stroke"), plots::hex(plots::kEdge));
    EXPECT_GE(halos[i]->number("stroke-width"), limits[i]->number("stroke-width") + 2);
    EXPECT_FALSE(halos[i]->attributes.contains("stroke-dasharray"));
  }
}

TEST(Charts, OfAColumnAre317PixelsWideWithLettersOfSevenPoints) {
  const XmlElement root = parse_xml(chart_svg(example(17), column_style()));
  EXPECT_EQ(root.attribute("width"), "317");  // 3.3 x 96
  std::set<std::string> sizes;
  for (const XmlElement* text : by_name(root, "text")) sizes.insert(text->attribute("font-size"));
  EXPECT_EQ(sizes, std::set<std::string>{"9.33"});  // 7 x 96 / 72
}

TEST(Charts, PointsThatDoNotFitAreHollowAndTheLegendSaysSo) {
  const XmlElement root = parse_xml(chart_svg(example(17), {}));
  EXPECT_EQ(by_class(root, "mark").back()->attribute("fill"), plots::hex(plots::kPaper));
  EXPECT_THAT(all_text(root), HasSubstr("does not fit"));
}

TEST(ValueAxis, BeginsAtZeroOnlyIfItsValuesAreFarApart) {
  EXPECT_EQ(plots::value_axis(std::vector<double>{1, 10, 12}).low, 0);
  EXPECT_GT(plots::value_axis(std::vector<double>{28, 31, 32}).low, 20);
}

TEST(KeyAxis, TwoDozenValuesHaveATickEachAndMoreHaveRoundOnes) {
  std::vector<double> values;
  const auto texts = [&] {
    std::vector<std::string> found;
    const auto axis = plots::KeyAxis::of_numbers(values);
    for (const plots::AxisTick& tick : axis.ticks()) found.push_back(tick.text);
    return found;
  };
  for (int i = 180; i < 204; ++i) values.push_back(i);
  EXPECT_EQ(texts().size(), 24u);
  for (int i = 204; i < 300; ++i) values.push_back(i);
  EXPECT_THAT(texts(), ::testing::ElementsAre("180", "200", "220", "240", "260", "280"));
  for (double& value : values) value /= 100;
  EXPECT_THAT(texts(), ::testing::ElementsAre("1.8", "2.0", "2.2", "2.4", "2.6", "2.8"));
}

TEST(KeyAxis, PowersOfTwoAreEquallyFarApart) {
  const auto axis = plots::KeyAxis::of_numbers({8, 16, 32, 64});
  EXPECT_NEAR(axis.share(16), 1.0 / 3, 1e-9);
  EXPECT_NEAR(plots::KeyAxis::of_numbers({2, 4, 6, 8}).share(4), 1.0 / 3, 1e-9);
}

// A pixel is 1/96 inch and a bp 1/72; PGF's y goes upwards.
TEST(Pgf, HasThePrimitivesOfTheDrawingInPointsFromTheTop) {
  plots::Svg svg;
  svg.rect(96, 48, 24, 12, {0x12, 0x34, 0x56})
      .open_group(" transform=\"rotate(-90 8 16)\"")
      .text(8, 16, "50 % & more", {.size = 12})
      .close_group()
      .raw(
          "<path d=\"M4 8h4V16Z\" fill=\"none\" stroke=\"#000000\" "
          "stroke-dasharray=\"4 2\"><title>not drawn</title></path>\n");
  const std::string pgf = plots::pgf_of(svg.document(192, 96, "t"));
  EXPECT_THAT(pgf, HasSubstr("\\pgfpathrectanglecorners{\\pgfqpoint{72bp}{-36bp}}"
                             "{\\pgfqpoint{90bp}{-45bp}}\\pgfusepath{fill}"));
  EXPECT_THAT(pgf, HasSubstr("{RGB}{18,52,86}"));
  EXPECT_THAT(pgf, HasSubstr("\\pgftransformrotate{90}"));
  EXPECT_THAT(pgf, HasSubstr("x=6bp,y=-12bp]{\\sffamily\\fontsize{9bp}{9bp}"));
  EXPECT_THAT(pgf, HasSubstr("50 \\% \\& more}"));
  EXPECT_THAT(pgf,
              HasSubstr("\\pgfsetdash{{3bp}{1.5bp}}{0bp}\\pgfpathmoveto{\\pgfqpoint{3bp}{-6bp}}"
                        "\\pgfpathlineto{\\pgfqpoint{6bp}{-6bp}}"
                        "\\pgfpathlineto{\\pgfqpoint{6bp}{-12bp}}\\pgfpathclose"));
  EXPECT_THAT(pgf, Not(HasSubstr("not drawn")));
  EXPECT_THAT(pgf, HasSubstr("{\\pgfqpoint{144bp}{-72bp}}\\pgfusepath{use as bounding box}"));
}

// SVG's own: opacity is of one element, corners are mitred up to 4 line widths.
TEST(Pgf, HasOpacityAndCornersOfEachElementAlone) {
  plots::Svg svg;
  svg.rect(0, 0, 8, 8, {0, 0, 0}, " fill-opacity=\"0.5\"")
      .text(0, 8, "solid | bar", {.size = 12})
      .path("M0 0L8 8L16 0", " fill=\"none\" stroke=\"#000000\" stroke-linejoin=\"round\"")
      .path("M0 0L8 8L16 1", " fill=\"none\" stroke=\"#000000\"");
  const std::string pgf = plots::pgf_of(svg.document(96, 96, "t"));
  const auto drawn = [](const std::string& join, const std::string& end) {
    return "\\pgfset" + join +
           "join\\pgfsetlinewidth{0.75bp}\\pgfsetdash{}{0bp}\\pgfpathmoveto{\\pgfqpoint{0bp}{0bp}}"
           "\\pgfpathlineto{\\pgfqpoint{6bp}{-6bp}}\\pgfpathlineto{\\pgfqpoint{12bp}{" +
           end + "}}";
  };
  EXPECT_THAT(pgf, HasSubstr(drawn("round", "0bp")));
  EXPECT_THAT(pgf, HasSubstr(drawn("miter", "-0.75bp")));
  EXPECT_THAT(pgf.substr(pgf.rfind("opacity", pgf.find("solid"))),
              testing::StartsWith("opacity{1}"));
  EXPECT_THAT(pgf, HasSubstr("\\pgfsetmiterlimit{4}"));
  EXPECT_THAT(pgf, HasSubstr("solid \\textbar{} bar"));
}

TEST(Pgf, OpensAndClosesEveryScope) {
  const std::string pgf = plots::pgf_of(chart_svg(example(880), {}));
  const auto count = [&](const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = pgf.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("\\begin{pgfscope}"), count("\\end{pgfscope}"));
  EXPECT_EQ(count("{"), count("}"));
  EXPECT_EQ(count("\\end{pgfpicture}"), 1U);
}

}  // namespace
}  // namespace pfeife
