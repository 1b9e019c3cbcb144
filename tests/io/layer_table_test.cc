#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "planner/io/model/imported_layers.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHeader =
    "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,"
    "weight_saved_bytes,temporary_bytes\n";

Layers table(const std::string& text, const ImportOptions& options = {}) {
  return layers_of_table({"dir/three.csv", text}, std::nullopt, options);
}
Layers three_rows(const std::optional<TextFile>& skips = {}) {
  return layers_of_table(
      {"dir/three.csv", std::string(kHeader) + "a,1,2,3,100,10,40,5,7\nb,1.5,2,3,200,0,50,6,8\n"
                                               "c,1,2,3,300,30,60,7,9\n"},
      skips);
}
std::string message_of_table(const std::string& text) {
  return message_of([&] { table(text); });
}
std::string message_of_skips(const std::string& text) {
  return message_of([&] { three_rows(TextFile{"skips.csv", text}); });
}

TEST(LayerTable, RowsBecomeLayersAndOutputsGoToTheNextRow) {
  const Layers layers = three_rows();
  EXPECT_EQ(layers.name, "three");
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers.layers[1].times, (std::vector<LayerTimes>{{1'500'000ns, 2ms, 3ms, 0ns}}));
  EXPECT_EQ(layers.layers[1].saved, Bytes{50});
  EXPECT_EQ(layers.layers[1].weight_saved, Bytes{6});
  EXPECT_EQ(layers.layers[1].temporary, PassBytes::same(Bytes{8}));
  ASSERT_EQ(layers.values.size(), 2u);
  EXPECT_EQ(layers.values[0],
            (LayerValue{"a", LayerId{0}, {LayerId{1}}, Bytes{100}, Bytes{100}, std::nullopt}));
  EXPECT_EQ(layers.values[1],
            (LayerValue{"b", LayerId{1}, {LayerId{2}}, Bytes{200}, Bytes{200}, std::nullopt}));
  ASSERT_EQ(layers.parameters.size(), 2u);  // b has none
  EXPECT_EQ(layers.parameters[1],
            (LayerParameter{"c", Bytes{30}, Bytes{30}, Bytes{60}, {LayerId{2}}, {0ns}}));
}

TEST(LayerTable, LayersWithWordsAreTheFirstAndTheLast) {
  const auto rows = [](const std::string& first, const std::string& last) {
    const std::string header(kHeader);
    return header.substr(0, header.size() - 1) + ",words\na,1,2,3,4,0,0,0,0," + first +
           "\nb,1,2,3,4,0,0,0,0," + last + "\n";
  };
  EXPECT_EQ(table(rows("", "")).words, std::nullopt);
  EXPECT_EQ(table(rows("", "output")).words, (WordShare{.layers = {LayerId{1}}}));
  EXPECT_EQ(table(rows("input", "output")).words, (WordShare{.layers = {LayerId{0}, LayerId{1}}}));
  EXPECT_MESSAGE(message_of_table(rows("", "out")));
  EXPECT_MESSAGE(message_of_table(rows("output", "")));
  EXPECT_MESSAGE(message_of_table(rows("", "input")));
  EXPECT_MESSAGE(message_of_table(rows("input", "")));
}

TEST(LayerTable, OptimizerDecidesTheStateAndKindsRepeatTheTimes) {
  ImportOptions options;
  options.device_kinds = 2;
  options.training = {Precision::Fp32, Optimizer::Momentum, 24};
  const Layers layers = table(std::string(kHeader) + "a,1,2,3,100,10,40,5,7\n", options);
  EXPECT_EQ(layers.parameters[0].state, Bytes{10});
  EXPECT_EQ(layers.parameters[0].optimizer.size(), 2u);
  EXPECT_EQ(layers.layers[0].times.size(), 2u);
  EXPECT_EQ(layers.microbatch_size, 24);
}

TEST(LayerTable, BackwardAsOneNumberIsHalvedAndSaidSo) {
  const Layers layers = table(
      "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
      "temporary_bytes\na,1,0.000003,0,0,0,0,0\n");
  EXPECT_EQ(layers.layers[0].times[0].backward_input, 1ns);
  EXPECT_EQ(layers.layers[0].times[0].backward_weight, 2ns);  // nothing is lost
  EXPECT_THAT(layers.notes, testing::Contains(HasSubstr("split in halves")));
}

TEST(LayerTable, OptionalColumnsCommentsQuotesAndAnyOrder) {
  const Layers layers = table(
      "# from a paper\r\nforward_ms,name,backward_weight_ms,backward_input_ms,output_bytes,"
      "parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes,optimizer_ms,output_ms\r\n"
      "1,\"conv, \"\"first\"\"\",3,2,0,0,0,0,0,4,0.6\r\n\r\n1, b "
      ",3,2,0,0,0,0,0,0,\r\n1,c,3,2,0,0,0,0,0,0,\r\n");
  EXPECT_EQ(layers.layers[0].name, "conv, \"first\"");
  EXPECT_EQ(layers.layers[1].name, "b");
  EXPECT_EQ(layers.layers[0].times[0], (LayerTimes{1ms, 2ms, 3ms, 4ms}));
  EXPECT_EQ(layers.values[0].transfer_time, Nanoseconds{600us});
  EXPECT_EQ(layers.values[1].transfer_time, std::nullopt);
}

TEST(LayerTable, SkipsOfOneValueMeetInOneValue) {
  const Layers layers =
      three_rows(TextFile{"skips.csv", "value,from,to,bytes\nh,a,c,77\nh,a,b,77\n"});
  ASSERT_EQ(layers.values.size(), 3u);
  EXPECT_EQ(
      layers.values[2],
      (LayerValue{"h", LayerId{0}, {LayerId{1}, LayerId{2}}, Bytes{77}, Bytes{77}, std::nullopt}));
  EXPECT_NE(layers.digest, three_rows().digest);
}

TEST(LayerTable, MistakesAreToldWithTheirPlace) {
  EXPECT_MESSAGE(message_of_table(""));
  EXPECT_MESSAGE(message_of_table(kHeader));
  EXPECT_MESSAGE(message_of_table("name,forwrd_ms\na,1\n"));
  EXPECT_MESSAGE(message_of_table("name;forward_ms\na;1\n"));
  EXPECT_MESSAGE(message_of_table("name,forward_ms\na,1\n"));
  EXPECT_MESSAGE(message_of_table("name,name\na,1\n"));
  EXPECT_MESSAGE(message_of_table("name,forward_ms,backward_ms,backward_input_ms\na,1,1,1\n"));
  const std::string header = kHeader;
  EXPECT_MESSAGE(message_of_table(header + "a,1,2\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,-2,3,100,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,nan,3,100,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,1e999,3,100,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,1e12,3,100,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,2 ms,3,100,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,2,3,1e18,10,40,5,7\n"));
  EXPECT_MESSAGE(message_of_table(header + "a,1,2,3,0,0,0,0,0\na,1,2,3,0,0,0,0,0\n"));
  EXPECT_MESSAGE(message_of_table(header + ",1,2,3,0,0,0,0,0\n"));
  EXPECT_MESSAGE(message_of_table(header + "\"a,1,2,3,0,0,0,0,0\n"));
  EXPECT_MESSAGE(message_of_table(header + "\"a\"x,1,2,3,0,0,0,0,0\n"));
  EXPECT_MESSAGE(message_of_table(header + "a\xff,1,2,3,0,0,0,0,0\n"));
}

TEST(LayerTable, MistakesInSkipsAreToldWithTheirPlace) {
  EXPECT_MESSAGE(message_of_skips("value,from,to,bytes\nh,c,a,7\n"));
  EXPECT_MESSAGE(message_of_skips("value,from,to,bytes\nh,b,b,7\n"));
  EXPECT_MESSAGE(message_of_skips("value,from,to,bytes\nh,a,d,7\n"));
  EXPECT_MESSAGE(message_of_skips("value,from,to,bytes\nh,a,b,7\nh,a,c,8\n"));
  EXPECT_MESSAGE(message_of_skips("value,from,to,byte\nh,a,b,7\n"));
}

TEST(LayerTable, IsReadFromFiles) {
  const std::string path =
      testing::TempDir() + "layer_table_test." + std::to_string(::getpid()) + ".csv";
  std::ofstream(path) << kHeader << "a,1,2,3,100,10,40,5,7\n";
  EXPECT_EQ(read_layer_table(path, std::nullopt).size(), 1u);
  // What spreadsheets write first; places are counted without it.
  std::ofstream(path) << "\xEF\xBB\xBF" << kHeader << "a,1,2,3,1,1,1,1,1\n";
  EXPECT_EQ(read_layer_table(path, std::nullopt).size(), 1u);
  std::ofstream(path) << "\xEF\xBB\xBFnmae\na\n";
  EXPECT_MESSAGE(message_of([&] { read_layer_table(path, std::nullopt); }));
  EXPECT_MESSAGE(message_of([] { read_layer_table("no/such.csv", std::nullopt); }));
  EXPECT_MESSAGE(message_of([] { read_layer_table(testing::TempDir(), std::nullopt); }));
}

}  // namespace
}  // namespace pfeife
