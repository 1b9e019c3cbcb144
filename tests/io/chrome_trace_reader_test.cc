#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "planner/io/results/chrome_trace.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

class TraceFile : public ::testing::Test {
 protected:
  TraceFile() : file_(::testing::TempDir() + "trace_" + std::to_string(getpid()) + ".json") {}
  ~TraceFile() override { std::filesystem::remove(file_); }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  std::filesystem::path file_;
};

TEST_F(TraceFile, IsRefusedIfItIsNoneOrHasNoTraceOfThatSource) {
  const auto message = [&](const std::string& text) -> std::string {
    write(text);
    return pfeife::message_of([&] { read_trace(file_, TraceSource::Estimated); });
  };
  EXPECT_MESSAGE(message("{"));
  EXPECT_MESSAGE(message("{}"));
  EXPECT_MESSAGE(message(R"({"traceEvents":[]})"));
  EXPECT_MESSAGE(message(R"({"traceEvents":[{"ph":7}]})"));
}

}  // namespace
}  // namespace pfeife
