#include "planner/io/traces/products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace pfeife {
namespace {

class Products : public ::testing::Test {
 protected:
  ~Products() override { std::filesystem::remove(file_); }
  std::vector<ObservedProduct> read(const std::string& events) const {
    std::ofstream(file_) << R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
    return read_products(file_);
  }
  static std::string step(int number, int start, int length) {
    return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" +
           std::to_string(number) + R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(start) +
           R"(, "dur": )" + std::to_string(length) + "}";
  }
  /// As torch 2.11 writes an operator with record_shapes.
  static std::string op(const std::string& name, int start, int external, const std::string& dims,
                        const std::string& types) {
    return R"(, {"ph": "X", "cat": "cpu_op", "name": ")" + name +
           R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(start) +
           R"(, "dur": 7, "args": {"External id": )" + std::to_string(external) +
           R"(, "Input Strides": [[9, 9], [9, 9]], "Input type": [)" + types +
           R"(], "Input Dims": [)" + dims + R"(], "Ev Idx": 4}})";
  }
  static std::string kernel(int external, int length) {
    return R"(, {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 50, )"
           R"("dur": )" +
           std::to_string(length) + R"(, "args": {"External id": )" + std::to_string(external) +
           ", \"stream\": 7}}";
  }

  const std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) /
                                      ("products_" + std::to_string(getpid()) + ".json");
};

// mm of 2x3 and 3x5: 60 FLOPs. bmm of four 2x3 and 3x5: 240. addmm has the bias first. The steps'
// ranges come after what is in them, as in real files.
TEST_F(Products, OfEachStepHaveTheirWork) {
  const auto found =
      read(step(3, 0, 10) + op("aten::mm", 1, 1, "[2, 3], [3, 5]", R"("float", "float")") +
           op("aten::bmm", 101, 2, "[4, 2, 3], [4, 3, 5]", R"("c10::BFloat16", "c10::BFloat16")") +
           op("aten::addmm", 110, 3, "[5], [2, 3], [3, 5], [], []",
              R"("c10::Half", "c10::Half", "c10::Half", "Scalar", "Scalar")") +
           op("aten::mm", 50, 4, "[2, 3], [3, 5]", R"("float", "float")") +
           op("aten::mm", 102, 5, "[2, 3], [3, 5]", R"("long int", "long int")") +
           op("aten::mm", 103, 6, "[2, 4], [3, 5]", R"("float", "float")") +
           op("aten::add", 104, 7, "[2, 3], [2, 3], []", R"("float", "float", "Scalar")") + ", " +
           step(4, 100, 20));
  ASSERT_EQ(found.size(), 3u) << "one is between steps, one of integers, one makes no sense";
  EXPECT_EQ(found[0].step, 0u);
  EXPECT_EQ(found[0].precision, "fp32");
  EXPECT_EQ(found[0].work, Flops{60});
  EXPECT_EQ(found[0].time, Nanoseconds{7000});
  EXPECT_EQ(found[1].step, 1u);
  EXPECT_EQ(found[1].precision, "bf16");
  EXPECT_EQ(found[1].work, Flops{240});
  EXPECT_EQ(found[2].precision, "fp16");
  EXPECT_EQ(found[2].work, Flops{60});
}

TEST_F(Products, OnAGpuTakeTheTimeOfTheirKernels) {
  const auto found =
      read(step(0, 0, 100) + op("aten::mm", 1, 1, "[2, 3], [3, 5]", R"("float", "float")") +
           op("aten::mm", 9, 2, "[2, 3], [3, 5]", R"("float", "float")") + kernel(1, 30) +
           kernel(1, 12) + kernel(5, 99));
  ASSERT_EQ(found.size(), 1u) << "the other one's kernel is not in the file";
  EXPECT_EQ(found[0].time, Nanoseconds{42'000});
}

TEST_F(Products, WithoutShapesThereAreNone) {
  EXPECT_TRUE(read(step(0, 0, 100) + op("aten::mm", 1, 1, "", "")).empty());
  EXPECT_TRUE(read(op("aten::mm", 1, 1, "[2, 3], [3, 5]", R"("float", "float")").substr(2)).empty())
      << "without steps";
}

}  // namespace
}  // namespace pfeife
