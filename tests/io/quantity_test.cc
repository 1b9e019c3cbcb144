#include "planner/io/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pfeife {
namespace {

using ::testing::HasSubstr;

TEST(Quantity, DecimalAndBinaryBytesDiffer) {
  EXPECT_EQ(parse_bytes("24576 MiB").value, Bytes{25769803776});
  EXPECT_EQ(parse_bytes("24GB").value, Bytes{24000000000});
  EXPECT_EQ(parse_bytes("1.5 KiB").value, Bytes{1536});
  EXPECT_EQ(parse_bytes("0 B").value, Bytes{0});
}

TEST(Quantity, RatesTimesAndWork) {
  EXPECT_EQ(parse_bytes_per_second("300 GB/s").value, BytesPerSecond{300e9});
  EXPECT_EQ(parse_bytes_per_second("200 Gbit/s").value, BytesPerSecond{25e9});
  EXPECT_EQ(parse_flops("2.1 GFLOP").value, Flops{2.1e9});
  EXPECT_EQ(parse_flops_per_second("35.6 TFLOP/s").value, FlopsPerSecond{35.6e12});
  EXPECT_EQ(parse_duration("5 us").value, Nanoseconds{5000});
  EXPECT_EQ(parse_duration("0.26 ms").value, Nanoseconds{260000});
  EXPECT_EQ(parse_duration("1e-3 s").value, Nanoseconds{1000000});
}

TEST(Quantity, ANumberWithoutUnitNamesTheUnits) {
  const auto found = parse_bytes_per_second("46");
  EXPECT_FALSE(found.value);
  EXPECT_THAT(found.error, HasSubstr("a number without a unit"));
  EXPECT_THAT(found.error, HasSubstr("units allowed: B/s, KB/s, MB/s, GB/s"));
  EXPECT_FALSE(parse_duration("0").value);
}

TEST(Quantity, AWrongUnitNamesTheNearest) {
  EXPECT_THAT(parse_bytes("40 gib").error, HasSubstr("did you mean \"GiB\"?"));
  EXPECT_FALSE(parse_bytes("40 GB/s").value);
  EXPECT_FALSE(parse_bytes_per_second("40 GB").value);
}

TEST(Quantity, NonsenseIsRefused) {
  for (const char* text : {"", " ", "GiB", "-1 GiB", "nan s", "inf s", "1 2 s", "1e400 s", "0x10 B",
                           "1,5 GiB", "9e18 s", "5 us ", " 5 us", "1e30 B", "+1 B", ". B"}) {
    EXPECT_FALSE(parse_bytes(text).value) << text;
    EXPECT_FALSE(parse_duration(text).value) << text;
  }
}

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  EXPECT_EQ(parse_number("1e3"), 1000.0);
  EXPECT_EQ(parse_number("1 "), std::nullopt);
  EXPECT_EQ(parse_number("--1"), std::nullopt);
  EXPECT_EQ(parse_number("nan"), std::nullopt);
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("12.0"), std::nullopt);
  EXPECT_EQ(parse_integer("99999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace pfeife
