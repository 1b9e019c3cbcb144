#include "planner/io/files/write_failure.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pfeife {
namespace {

TEST(WriteFailure, SaysWhyAndWhatToDo) {
  EXPECT_STREQ(
      write_failure("out/a.csv", ENOSPC).what(),
      "cannot write out/a.csv: No space left on device; free some space, or choose another "
      "folder with --out");
  EXPECT_STREQ(write_failure("save/step", EACCES, "--save").what(),
               "cannot write save/step: Permission denied; choose another folder with --save");
  EXPECT_STREQ(write_failure("out/case.json", EISDIR).what(),
               "cannot write out/case.json: Is a directory; a folder stands where a file belongs: "
               "remove or rename it, or choose another folder with --out");
  EXPECT_EQ(cause_and_remedy(EFBIG), "File too large; raise the limit of file sizes (ulimit -f)");
  EXPECT_EQ(cause_and_remedy(0), "the system does not say why");
}

}  // namespace
}  // namespace pfeife
