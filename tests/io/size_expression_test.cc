#include <gtest/gtest.h>

#include "planner/io/model/batch_symbol.h"

namespace pfeife {
namespace {

const std::string kS = "Symbol('s52', positive=True, integer=True)";

TEST(SizeExpression, SumsProductsMinimaAndMaxima) {
  EXPECT_EQ(evaluate_size(kS, 7), 7);
  EXPECT_EQ(evaluate_size("Integer(-3)", 7), -3);
  EXPECT_EQ(evaluate_size("Mul(Integer(4), " + kS + ")", 7), 28);
  EXPECT_EQ(evaluate_size("Add(Integer(1), " + kS + ", " + kS + ")", 7), 15);
  // The stride that nn.TransformerEncoderLayer leaves behind.
  EXPECT_EQ(evaluate_size("Min(Integer(32), Mul(Integer(32), " + kS + "))", 7), 32);
  EXPECT_EQ(evaluate_size("Max(Integer(1), Add(Integer(-9), " + kS + "))", 7), 1);
}

TEST(SizeExpression, KnowsItsSymbol) {
  EXPECT_EQ(symbol_of("Mul(Integer(4), " + kS + ")"), "s52");
  EXPECT_EQ(symbol_of("Integer(4)"), "");
  EXPECT_EQ(symbol_of("Add(" + kS + ", Symbol('s1', positive=True, integer=True))"), std::nullopt);
}

TEST(SizeExpression, RefusesTheRest) {
  for (const char* text :
       {"", "4", "Integer()", "Integer(4", "Integer(4))", "Symbol('')",
        "Symbol('s1', integer=True)", "FloorDiv(Integer(4), Integer(2))", "Add()",
        "Add(Integer(1),Integer(2))", "Mul(Integer(1), )", "Integer(99999999999999999999)"})
    EXPECT_EQ(symbol_of(text), std::nullopt) << text;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "Add(";
  EXPECT_EQ(symbol_of(deep), std::nullopt);
}

TEST(SizeExpression, OverflowIsNoValue) {
  const std::string text = "Mul(Integer(4611686018427387904), " + kS + ")";
  EXPECT_EQ(symbol_of(text), "s52");
  EXPECT_EQ(evaluate_size(text, 1), std::int64_t{1} << 62);
  EXPECT_EQ(evaluate_size(text, 2), std::nullopt);
}

}  // namespace
}  // namespace pfeife
