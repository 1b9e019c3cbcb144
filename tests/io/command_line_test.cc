#include "planner/io/files/command_line.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace pfeife {
namespace {

boost::program_options::variables_map read_words(const std::vector<std::string>& arguments) {
  boost::program_options::options_description known;
  known.add_options()("steps", boost::program_options::value<int>(), "number of steps")("threads",
                                                                                        "no value");
  return read_arguments(arguments, known, "plan", "pfeife-run train");
}
std::string refusal(const std::vector<std::string>& arguments) {
  return message_of([&] { read_words(arguments); });
}

TEST(CommandLine, HasOptionsAndOneSubjectInAnyOrder) {
  const auto found = read_words({"--steps", "3", "plan.yaml", "--threads"});
  EXPECT_EQ(found["plan"].as<std::string>(), "plan.yaml");
  EXPECT_EQ(found["steps"].as<int>(), 3);
  EXPECT_EQ(found.count("threads"), 1U);
  EXPECT_EQ(read_words({"--steps", "0"})["steps"].as<int>(), 0);
  EXPECT_EQ(read_words({"007"})["plan"].as<std::string>(), "007") << "a file may be called so";
  EXPECT_TRUE(read_words({}).empty());
}

TEST(CommandLine, RefusalsSayWhatIsWrongAndWhereTheOptionsAre) {
  EXPECT_EQ(refusal({"a.yaml", "b.yaml"}),
            "one plan at a time; options start with --, see pfeife-run train --help");
  EXPECT_EQ(refusal({"--step", "3"}), "unrecognised option '--step'; see pfeife-run train --help");
  EXPECT_EQ(refusal({"--steps", "x"}),
            "the argument ('x') for option '--steps' is invalid; see pfeife-run train --help");
  EXPECT_EQ(refusal({"--steps", "010"}), "--steps: '010' has a zero too many in front");
  EXPECT_EQ(refusal({"--steps=-01"}), "--steps: '-01' has a zero too many in front");
}

}  // namespace
}  // namespace pfeife
