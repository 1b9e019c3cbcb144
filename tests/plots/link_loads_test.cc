// How full links are: the drawing, the sentences, the part of the report.
#include <gmock/gmock.h>

#include "plots/report/parts.h"
#include "plots/screen/links.h"
#include "plots/timeline/pictures.h"
#include "tests/plots/xml.h"

namespace pfeife {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A step of 10 ms: nic is full in its second half, slot to a tenth all the time.
Trace loaded() {
  Trace trace;
  trace.source = TraceSource::Simulated;
  trace.ranks = 1;
  trace.events.push_back(
      {.cell = forward(StageId{0}, MicrobatchId{0}), .end = std::chrono::milliseconds{10}});
  trace.links = {
      {.link = "slot",
       .capacity = {2e9},
       .bytes = Bytes{2'000'000},
       .samples = {{std::chrono::milliseconds{0}, 0.1}, {std::chrono::milliseconds{10}, 0}}},
      {.link = "nic",
       .capacity = {1e9},
       .bytes = Bytes{5'000'000},
       .samples = {{std::chrono::milliseconds{5}, 1}, {std::chrono::milliseconds{10}, 0}},
       .slowed = std::chrono::milliseconds{3}}};
  return trace;
}

TEST(LinkLoadsSvg, DrawsTheFullestFirstAndSaysHowFullItIs) {
  const std::string drawing = link_loads_svg(loaded(), 1200);
  const XmlElement root = parse_xml(drawing);
  EXPECT_EQ(by_class(root, "load").size(), 2u);
  EXPECT_LT(drawing.find("nic"), drawing.find("slot"));
  EXPECT_THAT(drawing, HasSubstr("50.0 % of 1.00 GB/s, slows by 3.000 ms"));
  EXPECT_THAT(drawing, HasSubstr("10.0 % of 2.00 GB/s<"));
  EXPECT_EQ(link_loads_svg({}, 1200), "");
}

// A chart has one unit: microseconds beside an axis of milliseconds are parts of one.
TEST(LinkLoadsSvg, TimesAreInTheUnitOfTheAxis) {
  Trace trace = loaded();
  trace.links[0].slowed = std::chrono::microseconds{17};
  EXPECT_THAT(link_loads_svg(trace, 1200), HasSubstr("10.0 % of 2.00 GB/s, slows by 0.0170 ms<"));
  trace.links[0].slowed = Nanoseconds{49};
  EXPECT_THAT(link_loads_svg(trace, 1200), HasSubstr("10.0 % of 2.00 GB/s<"));
}

// Half of the plot is empty, then the area goes up to the row's top.
TEST(LinkLoadsSvg, TheAreaBeginsWhereTheLoadDoes) {
  const std::string data =
      by_class(parse_xml(link_loads_svg(loaded(), 1200)), "load")[0]->attribute("d");
  double left = 0, bottom = 0, first = 0;
  ASSERT_EQ(std::sscanf(data.c_str(), "M%lf %lfH%lf", &left, &bottom, &first), 3) << data;
  const double right = std::atof(data.substr(data.rfind('H') + 1).c_str());
  EXPECT_NEAR(first - left, (right - left) / 2, 1.01);
  double top = bottom;
  for (std::size_t at = 0; (at = data.find('V', at)) != std::string::npos; ++at)
    top = std::min(top, std::atof(data.c_str() + at + 1));
  EXPECT_NEAR(bottom - top, 26, 0.01) << "full: the height of a row";
}

LinksRecord slow_nic() {
  return {.links = {{"nic", 1e9, Bytes{5'000'000}, 0.5, std::chrono::milliseconds{3}},
                    {"slot", 2e9, Bytes{2'000'000}, 0.1, std::chrono::milliseconds{0}}},
          .slowed = {{1, 2, 8, std::chrono::milliseconds{1}, std::chrono::milliseconds{2},
                      std::chrono::milliseconds{4}},
                     {2, 3, 8, std::chrono::milliseconds{1}, Nanoseconds{1'000'100},
                      Nanoseconds{1'000'200}}},
          .faster = {.now = std::chrono::milliseconds{10},
                     .unshared = std::chrono::milliseconds{9},
                     .twice = std::chrono::milliseconds{8},
                     .instant = std::chrono::milliseconds{5}}};
}

TEST(LinksSentences, SayWhatSharingCostsAndWhatAFasterNetworkGains) {
  EXPECT_THAT(links_sentences(slow_nic()),
              ElementsAre("shared links cost 1.0000 ms: if every transfer had them alone the step "
                          "would take 9.0000 ms (-10.0 %)",
                          "fullest links over the step: nic: 50.0 % of 1.00 GB/s, slows transfers "
                          "by 3.0000 ms in all; slot: 10.0 % of 2.00 GB/s",
                          "messages between stages that wait for links most, mean: 1 to 2: 2.0000 "
                          "ms, at most 4.0000 ms, alone 1.0000 ms",
                          "a faster network would help: with links twice as fast the step would "
                          "take 8.0000 ms (-20.0 %), with messages that take their latency alone "
                          "5.0000 ms (-50.0 %)"));
}

TEST(LinksSentences, OfAFasterNetworkThatGainsLessThanAHundredthThereIsNone) {
  LinksRecord links = slow_nic();
  links.faster.unshared = links.faster.twice = links.faster.instant = Nanoseconds{9'901'000};
  EXPECT_EQ(faster_network_sentence(links), "");
  for (const std::string& sentence : links_sentences(links))
    EXPECT_THAT(sentence, Not(HasSubstr("would")));
  links.faster.instant = Nanoseconds{9'899'000};
  EXPECT_THAT(faster_network_sentence(links), HasSubstr("9.8990 ms (-1.0 %)"));
}

TEST(LinksSection, HasATableAndTheMessagesThatWait) {
  const std::string table = plots::links_section(slow_nic());
  EXPECT_THAT(table, HasSubstr("1 → 2"));
  EXPECT_THAT(table, HasSubstr("Mean load"));
  EXPECT_THAT(table, HasSubstr("50.0 %"));
  LinksRecord quiet = slow_nic();
  quiet.slowed.clear(), quiet.faster.twice = quiet.faster.instant = quiet.faster.now;
  EXPECT_THAT(plots::links_section(quiet), HasSubstr("a faster network would not help"));
}

}  // namespace
}  // namespace pfeife
