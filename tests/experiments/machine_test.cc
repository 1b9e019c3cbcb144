// What other programs did meanwhile: on the screen, and in the table of errors.
#include "experiments/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "experiments/show/texts.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 300 + 20 + 80 + 5 + 3 + 12 ticks of processor 0, ten times that of processor 1; idle and waiting
// for the disk do not count, nor does the line of all together.
TEST(OtherPrograms, BusyIsAllThatIsNotIdle) {
  const std::string stat =
      "cpu  3300 220 880 99999 770 55 33 132 0 0\n"
      "cpu0 300 20 80 10000 70 5 3 12 0 0\n"
      "cpu1 3000 200 800 20000 700 50 30 120 0 0\n"
      "intr 12345\n";
  EXPECT_DOUBLE_EQ(busy_seconds(stat, 100, [](int) { return true; }), 46.2);
  EXPECT_DOUBLE_EQ(busy_seconds(stat, 100, [](int processor) { return processor == 0; }), 4.2);
}

void compute_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// What this process and its children use is not the others'.
TEST(OtherPrograms, AreNotThisOneAndItsChildren) {
  const auto use = [](bool child_is_waited_for) {
    const OtherPrograms others;
    const pid_t child = fork();
    if (child == 0) {
      compute_for(std::chrono::milliseconds(800));
      _exit(0);
    }
    siginfo_t
        info{};  // the end is noticed; whether the child's time counts as ours is the question
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    if (child_is_waited_for) waitpid(child, nullptr, 0);
    const double found = others.processors();
    if (!child_is_waited_for) waitpid(child, nullptr, 0);
    return found;
  };
  // Others may run now: two calls differ by what they do, and by the child.
  EXPECT_GT(use(false), 0.05);
  EXPECT_GE(use(true), 0);
}

std::vector<CaseRecord> measured_with(double others) {
  PlanRecord plan;
  plan.row.plan = "gpipe";
  plan.row.family = "gpipe";
  plan.row.estimate = Nanoseconds{10'000'000};
  plan.row.measure = Nanoseconds{16'000'000};
  plan.measured = MeasuredRun{};
  plan.measured->others = others;
  CaseRecord record;
  record.name = "case";
  record.plans = {plan};
  return {record};
}

TEST(AccuracyTable, MarksWhatOtherProgramsDisturbed) {
  const std::string quiet = accuracy_table(measured_with(0.1)),
                    disturbed = accuracy_table(measured_with(1.8));
  EXPECT_THAT(quiet, HasSubstr("gpipe *  "));
  EXPECT_THAT(quiet, Not(HasSubstr("DISTURBED")));
  EXPECT_THAT(disturbed, HasSubstr("gpipe * !  "));
  EXPECT_THAT(disturbed, HasSubstr("! DISTURBED: other programs kept 1.8 of "));
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

// Six rounds from 15.9 to 16.4 ms: half of that is 1.6 % of 16.
TEST(AccuracyTable, SaysHowWellAMedianIsKnownAndFitsTheScreen) {
  std::vector<CaseRecord> cases = measured_with(1.8);
  PlanRecord& plan = cases[0].plans[0];
  for (const int us : {15'900, 16'000, 16'000, 16'000, 16'000, 16'400})
    plan.measured->rounds.push_back(Nanoseconds{1000 * us});
  plan.measured->p5 = plan.measured->p95 = Nanoseconds{16'000'000};
  plan.measured->interval_goal = 0.02;
  plan.row.simulate = plan.row.estimate;
  plan.need.allocated = {Bytes{1000}};
  plan.measured->peak_memory = {Bytes{2000}};
  cases[0].plans.push_back(plan);
  cases[0].plans[1].row.plan = cases[0].plans[1].row.family = "interleaved_1f1b";
  for (Nanoseconds& round : cases[0].plans[1].measured->rounds) round *= 2;
  cases[0].plans[1].row.measure = Nanoseconds{32'000'000};
  std::string text = accuracy_table(cases);
  EXPECT_THAT(text, HasSubstr("  1.6 %  "));
  EXPECT_THAT(text, Not(HasSubstr("p5 to p95")));
  EXPECT_THAT(text, HasSubstr("gpipe is faster than interleaved_1f1b: 100.0 +- 0.0 %"));
  EXPECT_THAT(text, HasSubstr("1 of 1 pairs are told apart, 0 of these in the predicted order"));
  EXPECT_LE(widest_line(text), 80u);
  EXPECT_THAT(accuracy_table(cases, 120), HasSubstr("p5 to p95"));
  EXPECT_THAT(text, HasSubstr("estimate"));
  EXPECT_THAT(text, Not(HasSubstr("anew")));
  cases[0].plans[0].measured->anew = Nanoseconds{20'000'000};
  text = accuracy_table(cases);
  EXPECT_THAT(text, HasSubstr("+25.0 %"));
  EXPECT_THAT(text, HasSubstr("anew: estimated with a profile that was taken in the same rounds"));
  EXPECT_LE(widest_line(text), 80u);
  cases[0].plans[0].measured->interval_goal = 0.01;
  text = accuracy_table(cases);
  EXPECT_THAT(text, HasSubstr("1.6 % ?  "));
  EXPECT_THAT(text, HasSubstr("? the median is not known to 1.0 % after 6 rounds"));
}

}  // namespace
}  // namespace pfeife
