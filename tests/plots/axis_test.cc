#include "plots/figure/axis.h"

#include <gtest/gtest.h>

#include "tests/plots/xml.h"

namespace pfeife::plots {
namespace {

TEST(TimeAxis, TicksAreRoundAndNoMoreThanAskedFor) {
  for (const std::int64_t longest :
       {0L, 1L, 9L, 10L, 99L, 12'345L, 15'900'000L, 999'999'999L, 7'000'000'000L})
    for (const std::size_t most : {2u, 5u, 13u}) {
      const TimeAxis axis = time_axis(Nanoseconds{longest}, most);
      ASSERT_LE(axis.ticks.size(), most) << longest;
      ASSERT_GE(axis.ticks.size(), 1u);
      EXPECT_EQ(axis.ticks[0], Nanoseconds{0});
      if (axis.ticks.size() < 2) continue;
      std::int64_t step = axis.ticks[1].count();
      EXPECT_GT(axis.ticks.back().count() + step, longest);  // reaches the end
      while (step % 10 == 0) step /= 10;
      EXPECT_TRUE(step == 1 || step == 2 || step == 5) << step;
    }
}

TEST(TimeAxis, StepsOf15Point9MillisecondsByNumberOfTicks) {
  // Ticks at 0, 2, ..., 14 ms are eight; with one less the next round step is 5 ms: 0, 5, 10, 15.
  EXPECT_EQ(time_axis(Nanoseconds{15'900'000}, 8).ticks.size(), 8u);
  EXPECT_EQ(time_axis(Nanoseconds{15'900'000}, 7).ticks.size(), 4u);
  EXPECT_EQ(time_axis(Nanoseconds{15'900'000}, 10).unit, "ms");
}

TEST(TimeAxis, WritesTimesExactlyInItsUnit) {
  const TimeAxis axis = time_axis(Nanoseconds{15'900'000}, 10);
  EXPECT_EQ(exact(Nanoseconds{4'100'000}, axis), "4.1");
  EXPECT_EQ(exact(Nanoseconds{4'000'001}, axis), "4.000001");
  EXPECT_EQ(exact(Nanoseconds{-50'000}, axis), "-0.05");
  EXPECT_EQ(exact(Nanoseconds{7}, time_axis(Nanoseconds{9}, 5)), "7");
}

TEST(Figures, HaveFourDigitsOrAllOfThem) {
  EXPECT_EQ(rounded(Nanoseconds{1'234'567'890}), "1.235 s");
  EXPECT_EQ(rounded(Nanoseconds{225'900'000}), "225.9 ms");
  EXPECT_EQ(rounded(Nanoseconds{999'990}), "1000 µs");
  EXPECT_EQ(rounded(Nanoseconds{12}), "12 ns");
  EXPECT_EQ(percent(0.2222), "22.2 %");
  EXPECT_EQ(rounded(Bytes{std::int64_t{38} << 30}), "38.00 GiB");
  EXPECT_EQ(rounded(Bytes{512}), "512 B");
}

TEST(Figures, AreWrittenInTheUnitOfTheirAxis) {
  EXPECT_EQ(rounded(Nanoseconds{912'345}, time_axis(Nanoseconds{15'900'000}, 10)), "0.9123 ms");
  EXPECT_EQ(rounded(Bytes{std::int64_t{512} << 20}, kGiB), "0.5000 GiB");
}

TEST(Ticks, OfALinearAxisAreRoundAndWithinIt) {
  EXPECT_EQ(linear_ticks(3, 21), (std::vector<double>{4, 6, 8, 10, 12, 14, 16, 18, 20}));
  EXPECT_EQ(linear_ticks(7, 7), std::vector<double>{7});
}

TEST(Ticks, OfALogarithmicAxisAreFourAtLeastFromAFactorOf50On) {
  EXPECT_EQ(log_ticks(0.9, 55), (std::vector<double>{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(log_ticks(1, 20'000), (std::vector<double>{1, 10, 100, 1000, 10'000}));
  for (double low = 1; low < 10; low *= 1.01)
    for (const double factor : {50.0, 9999.0, 10'001.0})
      EXPECT_GE(log_ticks(low, factor * low).size(), 4u) << low << " " << factor;
}

// The median of 1, 2, 3 and 1000 is 2 (the lower of the middle ones): up to 8.
TEST(Reach, IsFourTimesTheMedianAndNotAboveTheFurthest) {
  EXPECT_EQ(reach({0, 3, 1000, 1, 2}, 0.5), 8);
  EXPECT_EQ(reach({1, 2, 3}, 0.5), 3);
  EXPECT_EQ(reach({0.1}, 0.5), 0.5);
  EXPECT_EQ(reach({}, 0.5), 0.5);
}

// The judge itself: what is not XML is refused.

TEST(XmlReader, ReadsElementsAttributesAndEntities) {
  const XmlElement root = parse_xml("<a x=\"1 &lt; 2\"><b/>t&amp;u<c y=\"3\">v</c></a>\n");
  EXPECT_EQ(root.attribute("x"), "1 < 2");
  EXPECT_EQ(root.text, "t&u");
  ASSERT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.children[1].number("y"), 3);
}

TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  for (const char* text :
       {"<a>", "<a></b>", "<a x=1/>", "<a x=\"1\" x=\"2\"/>", "<a>&</a>", "<a><</a>", "<a/><b/>",
        "<a x=\"<\"/>", "<a>\x01</a>", "<a>&unknown;</a>", ""})
    EXPECT_THROW(parse_xml(text), std::runtime_error) << text;
}

}  // namespace
}  // namespace pfeife::plots
