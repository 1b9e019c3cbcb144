#include <gmock/gmock.h>

#include "experiments/show/texts.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

/// b sends 5 B to c, a 3 B to c; a and c share a parameter of 7 B.
Layers three_layers() {
  Layers layers;
  for (const char* name : {"a", "b", "c"}) {
    Layer layer{.name = name};
    layer.times = {{Nanoseconds{1}, Nanoseconds{2}, Nanoseconds{3}, {}},
                   {Nanoseconds{4}, Nanoseconds{5}, Nanoseconds{6}, {}}};
    layer.saved = Bytes{10};
    layer.weight_saved = Bytes{11};
    layer.temporary = PassBytes::same(Bytes{12});
    layers.layers.push_back(layer);
  }
  layers.layers[1].module_path = "block, 1";
  layers.layers[0].no_cut_after = "both sides change it";
  layers.values.push_back({"x", LayerId{1}, {LayerId{2}}, Bytes{5}, Bytes{5}, {}});
  layers.values.push_back({"y", LayerId{0}, {LayerId{2}}, Bytes{3}, Bytes{3}, {}});
  layers.storages.push_back({Bytes{20}, {LayerId{1}, LayerId{2}}, {}, {}});
  layers.parameters.push_back({"w", Bytes{7}, Bytes{7}, Bytes{14}, {LayerId{0}, LayerId{2}}, {}});
  return layers;
}

TEST(LayerList, HasWhatEachLayerTakesAndWhatACutAfterItSends) {
  Cluster cluster;
  cluster.kinds = {{.name = "fast"}, {.name = "slow"}};
  EXPECT_EQ(layers_csv(three_layers(), cluster),
            "layer,name,module,device_kind,forward_ns,backward_input_ns,backward_weight_ns,"
            "sent_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes,"
            "no_cut_after\n"
            "0,a,,fast,1,2,3,3,7,10,11,12,both sides change it\n"
            "0,a,,slow,4,5,6,3,7,10,11,12,both sides change it\n"
            "1,b,\"block, 1\",fast,1,2,3,8,0,30,11,12,\n"
            "1,b,\"block, 1\",slow,4,5,6,8,0,30,11,12,\n"
            "2,c,,fast,1,2,3,0,0,10,11,12,\n"
            "2,c,,slow,4,5,6,0,0,10,11,12,\n");
  const std::string table = layer_table(three_layers(), cluster);
  EXPECT_THAT(table, HasSubstr("    0!  a "));
  EXPECT_THAT(table, HasSubstr("     1  block, 1 (b) "));
}

class Layered : public ProgramTest {};

TEST_F(Layered, TheProgramListsTheLayersAndStops) {
  const std::string config = (configs() / "two_stage.yaml").string();
  const Outcome table = run({config, "--layers"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("F, ms"));
  const Outcome csv = run({config, "--layers=csv"});
  EXPECT_THAT(csv.out, ::testing::StartsWith("layer,name,module,"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results"));
  EXPECT_EQ(run({config, "--layers=xml"}).code, 2);
}

}  // namespace
}  // namespace pfeife
