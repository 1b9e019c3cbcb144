// Words in which what repeats is written once: they come back as they were, and are short where
// they repeat.
#include "planner/io/plan/repeats.h"

#include <gtest/gtest.h>

#include <random>

namespace pfeife {
namespace {

constexpr std::size_t kMost = 1000000;

TEST(Repeats, AreWrittenOnce) {
  EXPECT_EQ(fold_repeats(""), "");
  EXPECT_EQ(fold_repeats("rfb"), "rfb");
  EXPECT_EQ(fold_repeats("rr"), "rr");
  EXPECT_EQ(fold_repeats("rrrr"), "4r");
  EXPECT_EQ(fold_repeats("fdfdfdrrrrb"), "3(fd)4rb");
  EXPECT_EQ(fold_repeats(std::string(1000, 's')), "1000s");
}

TEST(Repeats, ComeBackAsTheyWereAndAreNoLongerThanTheWord) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string word;
    while (random() % 12 != 0) {
      std::string part;
      for (std::size_t k = 1 + random() % 5; k > 0; --k) part += "rfbd"[random() % 4];
      for (std::size_t k = 1 + random() % 20; k > 0; --k) word += part;
    }
    const std::string folded = fold_repeats(word);
    EXPECT_LE(folded.size(), word.size());
    EXPECT_EQ(unfold_repeats(folded, word.size()), word) << folded;
    EXPECT_EQ(unfold_repeats(folded + 'r', word.size()), std::nullopt) << "one too long";
  }
}

TEST(Repeats, OtherTextIsRefused) {
  for (const char* text : {"3", "3(", "3(fd", "3()", "(fd)", "0f", "1f", "-2f", "3(f2d)", "f)", "F",
                           "99999999999999999999f", "999999999f", "2(fd", "f d"})
    EXPECT_EQ(unfold_repeats(text, kMost), std::nullopt) << text;
}

}  // namespace
}  // namespace pfeife
