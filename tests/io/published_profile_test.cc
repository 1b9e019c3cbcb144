#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/model/imported_layers.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kFolder = PFEIFE_SOURCE_DIR "/configs/profiles/";

struct Sums {
  Nanoseconds forward{0}, backward{0};
  Bytes parameters;
};
Sums sums(const Layers& layers) {
  Sums sums;
  for (const Layer& layer : layers.layers) {
    const LayerTimes& times = layer.times.at(0);
    sums.forward += times.forward;
    sums.backward += times.backward_input + times.backward_weight;
  }
  for (const LayerParameter& parameter : layers.parameters) sums.parameters += parameter.bytes;
  return sums;
}
std::size_t edges(const Layers& layers) {
  std::size_t count = 0;
  for (const LayerValue& value : layers.values) count += value.consumers.size();
  return count;
}
void expect_linear(const Layers& layers) {
  for (const LayerValue& value : layers.values)
    for (const LayerId reader : value.consumers) EXPECT_GT(reader, value.producer) << value.name;
}
// Sums over the files' own lines: nodes, edges, microseconds forward and backward, parameter bytes.
struct Published {
  const char* file;
  std::size_t nodes, edges;
  std::int64_t forward_us, backward_us, parameter_bytes;
};
constexpr Published kPipeDream[] = {
    {"alexnet", 23, 23, 680703, 40520, 244403360},
    {"vgg16", 41, 41, 251874, 438633, 553430176},
    {"resnet50", 177, 193, 201450, 260931, 102228128},
    {"densenet121", 429, 487, 186489, 148751, 31915424},
    {"inception_v3", 326, 362, 310969, 399769, 108645056},
    {"nasnetamobile", 921, 1078, 338481, 261363, 34343816},
    {"gnmt", 48, 58, 33533, 55883, 775063808},
};

TEST(PipeDreamProfile, SumsAreThoseOfTheFiles) {
  for (const Published& published : kPipeDream) {
    SCOPED_TRACE(published.file);
    const Layers layers =
        read_pipedream_profile(kFolder + "pipedream/" + published.file + ".graph.txt");
    EXPECT_EQ(layers.name, published.file);
    EXPECT_EQ(layers.size(), published.nodes);
    EXPECT_EQ(edges(layers), published.edges);
    EXPECT_EQ(sums(layers).forward, published.forward_us * 1us);
    EXPECT_EQ(sums(layers).backward, published.backward_us * 1us);
    EXPECT_EQ(sums(layers).parameters, Bytes{published.parameter_bytes});
    expect_linear(layers);
  }
}

// A diamond in reversed lines; node2 has two outputs, of which node4 selects the second.
constexpr const char* kDiamond =
    "node4 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, "
    "activation_size=30.0, parameter_size=0.000\n"
    "node3 -- Add(1, 2) -- forward_compute_time=1.000, backward_compute_time=0.000003, "
    "activation_size=5.0, parameter_size=0.000\n"
    "node2 -- LSTM(a -- b) -- forward_compute_time=3.000, backward_compute_time=5.000, "
    "activation_size=[20.0; 30.0], parameter_size=8.000\n"
    "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, "
    "activation_size=7.0, parameter_size=0.000 -- stage_id=0\n"
    "\tnode4 -- node3\n\tnode2 -- node4\n\tnode1 -- node2\n\tnode1 -- node3\n";

// GNMT's inputs are published with no bytes; a table's or profile's values all get gradients.
TEST(PipeDreamProfile, AnOutputOfNoBytesGetsAGradient) {
  const Layers layers = read_pipedream_profile(kFolder + "pipedream/gnmt.graph.txt");
  EXPECT_TRUE(std::ranges::any_of(
      layers.values, [](const LayerValue& v) { return v.gradient_bytes == Bytes{0}; }));
  EXPECT_TRUE(std::ranges::all_of(layers.values, &LayerValue::has_gradient));
}

TEST(PipeDreamProfile, BranchesListsAndHalvedBackward) {
  ImportOptions options;
  options.device_kinds = 2;
  options.training.optimizer = Optimizer::Momentum;
  const Layers layers = layers_of_pipedream({"x/diamond.txt", kDiamond}, options);
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers.layers[0].name, "node1 Input0");
  EXPECT_EQ(layers.layers[1].name, "node2 LSTM");
  EXPECT_EQ(layers.layers[2].name, "node4 __getitem__");  // node3 waits for it
  EXPECT_EQ(layers.layers[3].name, "node3 Add");
  EXPECT_EQ(layers.layers[3].times, (std::vector<LayerTimes>(2, {1ms, 1ns, 2ns, 0ns})));
  EXPECT_EQ(layers.layers[1].saved, Bytes{50});
  ASSERT_EQ(layers.values.size(), 3u);
  EXPECT_EQ(
      layers.values[0],
      (LayerValue{
          "node1 Input0", LayerId{0}, {LayerId{1}, LayerId{3}}, Bytes{7}, Bytes{7}, std::nullopt}));
  EXPECT_EQ(layers.values[1].bytes, Bytes{30});
  EXPECT_EQ(layers.parameters,
            (std::vector<LayerParameter>{
                {"node2 LSTM", Bytes{8}, Bytes{8}, Bytes{8}, {LayerId{1}}, {0ns, 0ns}}}));
  EXPECT_THAT(layers.notes, testing::Contains(HasSubstr("split in halves")));
}

TEST(PipeDreamProfile, MistakesAreToldWithTheirPlace) {
  const auto message = [](std::string from, const std::string& to) {
    std::string text = kDiamond;
    text.replace(text.find(from), from.size(), to);
    return message_of([&] { layers_of_pipedream({"d.txt", text}); });
  };
  EXPECT_MESSAGE(message("\tnode1 -- node3", "\tnode1 -- node9"));
  EXPECT_MESSAGE(message("\tnode1 -- node3", "\tnode3 -- node2"));
  EXPECT_MESSAGE(message("node2 -- LSTM", "node3 -- LSTM"));
  EXPECT_MESSAGE(message("forward_compute_time=3.000", "forward_compute_time=-3"));
  EXPECT_MESSAGE(message("[20.0; 30.0]", "[20.0; x]"));
  EXPECT_MESSAGE(message("[20.0; 30.0]", "[20.0; 30.0"));
  EXPECT_MESSAGE(message("parameter_size=8.000", "parameter=8"));
  EXPECT_MESSAGE(message("node1 -- Input0", "nodex -- Input0"));
  EXPECT_MESSAGE(message_of([] { layers_of_pipedream({"d.txt", "hello\n"}); }));
  EXPECT_MESSAGE(message_of([] { layers_of_pipedream({"d.txt", "\n"}); }));
}

TEST(PiperProfile, SumsAreThoseOfTheFiles) {
  const Layers bert = read_piper_profile(kFolder + "piper/bert32a100.json", 1s);
  EXPECT_EQ(bert.size(), 37u);
  EXPECT_EQ(edges(bert), 67u);
  EXPECT_EQ(sums(bert).forward + sums(bert).backward, Nanoseconds{972'864'000});
  EXPECT_EQ(sums(bert).parameters, Bytes{5'879'481'600});
  expect_linear(bert);
  const Layers gnmt = read_piper_profile(kFolder + "piper/gnmt.json", 1ms);
  EXPECT_EQ(gnmt.size(), 78u);
  EXPECT_EQ(edges(gnmt), 104u);
  EXPECT_EQ(sums(gnmt).forward + sums(gnmt).backward, Nanoseconds{520'453'000});
  expect_linear(gnmt);
}

constexpr const char* kTwoNodes = R"({"nodes": [
  {"id": 7, "name": "late", "TMPCs": {"1": [
    {"id": "activation recomp", "timePerSample": 9, "parameterSize": 9, "memoryUsageA": 9, "memoryUsageB": 9},
    {"id": "vanilla", "timePerSample": 0.3, "parameterSize": 10, "memoryUsageA": 5, "memoryUsageB": 25}]}},
  {"id": 3, "name": "early", "TMPCs": {"1": [
    {"id": "vanilla", "timePerSample": 0.0, "parameterSize": 0, "memoryUsageA": 4, "memoryUsageB": 0}]}}],
  "edges": [{"sourceId": 3, "destId": 7, "communicationCost": 4.0}]})";

TEST(PiperProfile, PlainVariantOfDegreeOne) {
  const Layers layers = layers_of_piper({"p.json", kTwoNodes}, 1s);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers.layers[0].name, "early#3");
  EXPECT_EQ(layers.layers[1].times[0], (LayerTimes{100ms, 100ms, 100ms, 0ns}));
  EXPECT_EQ(layers.layers[1].saved, Bytes{5});
  ASSERT_EQ(layers.parameters.size(), 1u);
  EXPECT_EQ(layers.parameters[0].bytes + layers.parameters[0].gradient, Bytes{25});  // memoryUsageB
  EXPECT_EQ(layers.values[0].bytes, Bytes{4});
}

TEST(PiperProfile, MistakesAreToldWithTheirPlace) {
  const auto message = [](std::string from, const std::string& to) {
    std::string text = kTwoNodes;
    text.replace(text.find(from), from.size(), to);
    return message_of([&] { layers_of_piper({"p.json", text}, 1s); });
  };
  EXPECT_MESSAGE(message("\"destId\": 7", "\"destId\": 8"));
  EXPECT_MESSAGE(message("\"destId\": 7", "\"destId\": 3"));
  EXPECT_MESSAGE(message("\"id\": 3", "\"id\": 7"));
  EXPECT_MESSAGE(message("\"1\": [", "\"2\": ["));
  EXPECT_MESSAGE(message("\"vanilla\"", "\"x\""));
  EXPECT_MESSAGE(message("0.3", "-0.3"));
  EXPECT_MESSAGE(message("0.3", "\"0.3\""));
  EXPECT_MESSAGE(message("{\"nodes\"", "{\"knots\""));
  EXPECT_MESSAGE(message("\"edges\": [", "\"edges\": [["));
}

}  // namespace
}  // namespace pfeife
