// Every rank a process: a sample of the grid with every family on every model, over Unix domain
// sockets and TCP, against the unsplit model.
#include <gmock/gmock.h>

#include "tests/runtime/processes.h"

namespace pfeife {
namespace {

using ProcessGrid = testing::ProcessTest;

TEST_F(ProcessGrid, GivesTheGradientsOfTheUnsplitModelWithRanksAsProcesses) {
  const testing::Ended ended =
      start({PFEIFE_RANKS, "grid", folder_.string()})->wait(std::chrono::seconds(300));
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_GT(std::atoi(ended.text.c_str()), 200) << ended.text;
}

}  // namespace
}  // namespace pfeife
