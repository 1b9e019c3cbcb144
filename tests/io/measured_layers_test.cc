// The file of layer times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/io/model/measured_layers_file.h"
#include "planner/ir/basics/error.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class MeasuredLayersFile : public ::testing::Test {
 protected:
  fs::path write(const std::string& text) {
    std::ofstream(file_) << text;
    return file_;
  }
  std::string refused(const std::string& text) {
    write(text);
    return message_of([&] { read_measured_layers(file_, "layers.csv"); });
  }
  const fs::path file_ =
      fs::path(::testing::TempDir()) /
      (std::string("layers_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

constexpr const char* kHead =
    "kind,tp,microbatch,sequence,recompute,forward_ms,input_ms,weight_ms\n";

TEST_F(MeasuredLayersFile, IsReadWithAndWithoutItsOptionalColumns) {
  const MeasuredLayers few = read_measured_layers(
      write("# a comment\nkind,microbatch,sequence,forward_ms,input_ms,weight_ms\n"
            "head,2,4096,1.5,0.25,0\n"));
  ASSERT_EQ(few.rows.size(), 1u);
  EXPECT_EQ(few.rows[0].setting, (LayerSetting{.kind = "head", .microbatch = 2, .sequence = 4096}));
  EXPECT_EQ(few.rows[0].forward, Nanoseconds{1'500'000});
  EXPECT_EQ(few.rows[0].input, Nanoseconds{250'000});
  EXPECT_EQ(few.rows[0].saved, std::nullopt);
  const MeasuredLayers all = read_measured_layers(write(
      "kind,tp,cp,ep,microbatch,sequence,recompute,precision,compiled,forward_ms,input_ms,"
      "weight_ms,saved_bytes,temporary_bytes,parameter_bytes,output_bytes,machine,versions\n"
      "attention+experts,2,4,8,1,128,mlp+layernorm,fp8,true,1,2,3,10,20,30,40,H100,torch 2.9\n"
      "head,2,4,1,1,128,none,fp8,true,1,2,3,,,,,H100,torch 2.9\n"));
  EXPECT_EQ(all.rows[0].setting,
            (LayerSetting{"attention+experts", 2, 4, 8, 1, 128, "layernorm+mlp", "fp8"}));
  EXPECT_EQ(all.rows[0].saved, Bytes{10});
  EXPECT_EQ(all.rows[0].temporary, Bytes{20});
  EXPECT_EQ(all.rows[0].parameters, Bytes{30});
  EXPECT_EQ(all.machine, "H100, torch 2.9");
}

TEST_F(MeasuredLayersFile, IsWrittenAsItIsRead) {
  const MeasuredLayers read = read_measured_layers(
      write("kind,tp,microbatch,sequence,precision,forward_ms,input_ms,weight_ms,saved_bytes,"
            "machine\nattention window 4096+dense,2,1,4096,bf16,0.123457,1234.5,0.000001,77,"
            "\"H100, of ours\"\nhead,2,1,4096,,3,2,1,,\"H100, of ours\"\n"));
  const MeasuredLayers again = read_measured_layers(write(measured_layers_text(read)));
  EXPECT_EQ(again, read);
}

TEST_F(MeasuredLayersFile, MistakesAreToldWithTheirPlace) {
  const std::string head = kHead;
  EXPECT_THAT(refused(head), HasSubstr("no layer is measured here"));
  EXPECT_THAT(refused(head + "head,0,1,8,none,1,1,1\n"),
              HasSubstr("layers.csv:2:6: column 'tp': '0' is no size"));
  EXPECT_THAT(refused(head + "head,1,,8,none,1,1,1\n"), HasSubstr("column 'microbatch': ''"));
  EXPECT_THAT(refused(head + ",1,1,8,none,1,1,1\n"), HasSubstr("column 'kind' is empty"));
  EXPECT_THAT(refused(head + "head,1,1,8,none,-1,1,1\n"), HasSubstr("forward_ms"));
  EXPECT_THAT(refused(head + "head,1,1,8,full,1,1,1\n"),
              HasSubstr("column 'recompute': 'full'; use none, or modules"));
  EXPECT_THAT(refused(head + "head,1,1,8,none,1,1,1\nhead,1,1,8,none,2,1,1\n"),
              HasSubstr("line 2 has the same layer"));
  EXPECT_THAT(refused("kind,microbatch,sequence,forward_ms,input_ms,weight_ms,compile\n"),
              HasSubstr("compiled"));
  EXPECT_THAT(refused("kind,microbatch,sequence,forward_ms,input_ms,weight_ms,compiled\n"
                      "head,1,8,1,1,1,true\nembedding,1,8,1,1,1,false\n"),
              HasSubstr("keep two files"));
}

}  // namespace
}  // namespace pfeife
