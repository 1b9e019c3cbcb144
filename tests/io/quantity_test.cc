#include "planner/io/files/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

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

// SI prefixes are powers of 1000, those of IEC 80000-13 powers of 2; a byte is 8 bits.
TEST(Quantity, EveryUnitIsWhatTheStandardsSay) {
  for (const auto& [unit, bytes] : std::map<std::string, std::int64_t>{{"B", 1},
                                                                       {"KB", 1'000},
                                                                       {"MB", 1'000'000},
                                                                       {"GB", 1'000'000'000},
                                                                       {"TB", 1'000'000'000'000},
                                                                       {"KiB", 1LL << 10},
                                                                       {"MiB", 1LL << 20},
                                                                       {"GiB", 1LL << 30},
                                                                       {"TiB", 1LL << 40}}) {
    EXPECT_EQ(parse_bytes("1 " + unit).value, Bytes{bytes}) << unit;
    EXPECT_EQ(parse_bytes_per_second("1 " + unit + "/s").value,
              BytesPerSecond{static_cast<double>(bytes)})
        << unit;
  }
  EXPECT_EQ(parse_bytes_per_second("8 Mbit/s").value, BytesPerSecond{1e6});
  EXPECT_EQ(parse_bytes_per_second("8 Gbit/s").value, BytesPerSecond{1e9});
  double prefix = 1;
  for (const std::string unit : {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"}) {
    EXPECT_EQ(parse_flops("1 " + unit).value, Flops{prefix}) << unit;
    EXPECT_EQ(parse_flops_per_second("1 " + unit + "/s").value, FlopsPerSecond{prefix}) << unit;
    prefix *= 1000;
  }
  std::int64_t time = 1;
  for (const std::string unit : {"ns", "us", "ms", "s"}) {
    EXPECT_EQ(parse_duration("1 " + unit).value, Nanoseconds{time}) << unit;
    time *= 1000;
  }
  EXPECT_EQ(parse_duration("1 µs").value, Nanoseconds{1000});
}

TEST(Quantity, ANumberWithoutUnitNamesTheUnits) {
  const auto found = parse_bytes_per_second("46");
  EXPECT_FALSE(found.value);
  EXPECT_MESSAGE(found.error);
  EXPECT_FALSE(parse_duration("0").value);
}

TEST(Quantity, AWrongUnitNamesTheNearest) {
  EXPECT_MESSAGE(parse_bytes("40 gib").error);
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
  EXPECT_EQ(parse_number(""), std::nullopt);
  EXPECT_EQ(parse_number("-"), std::nullopt);
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("12.0"), std::nullopt);
  EXPECT_EQ(parse_integer("99999999999999999999"), std::nullopt);
}

TEST(Quantity, LengthsAreInPixelsOf96ToTheInch) {
  EXPECT_NEAR(*parse_length("3.3in").value, 316.8, 1e-9);
  EXPECT_NEAR(*parse_length("25.4mm").value, 96, 1e-9);
  EXPECT_NEAR(*parse_length("72pt").value, 96, 1e-9);
  EXPECT_NE(parse_length("3.3 inch").error.find("units allowed: px, in, cm, mm, pt"),
            std::string::npos);
}

}  // namespace
}  // namespace pfeife
