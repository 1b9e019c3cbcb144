// The table of measured products, and the key of a device kind that names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

namespace fs = std::filesystem;

class MeasuredProductsFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string refused(const std::string& text) {
    const fs::path file = write("products.csv", text);
    return message_of([&] { read_measured_products(file); });
  }
  const fs::path folder_ =
      fs::path(::testing::TempDir()) /
      (std::string("products_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

constexpr const char* kCluster =
    "version: 1\nname: c\ndevice_kinds:\n  gpu:\n    memory: 80 GiB\n"
    "    measured_products: products.csv\ndevices: [{kind: gpu, count: 1}]\n";

TEST_F(MeasuredProductsFile, IsReadWithAndWithoutItsOptionalColumns) {
  const MeasuredProducts few = read_measured_products(
      write("few.csv", "# a comment\nprecision,pass,m,n,k,us\nbf16,weight,8,16,32,12.5\n"));
  ASSERT_EQ(few.rows.size(), 1u);
  EXPECT_EQ(
      few.rows[0],
      (MeasuredProduct{
          "bf16", {.pass = ProductPass::Weight, .groups = 1, .m = 8, .n = 16, .k = 32}, 12.5e-6}));
  const MeasuredProducts all = read_measured_products(
      write("all.csv",
            "precision,operator,pass,groups,m,n,k,us\nfp8,causal_attention,,64,4096,4096,128,1\n"));
  EXPECT_EQ(all.rows[0].shape, (ProductShape{ProductOperator::CausalAttention, ProductPass::Any, 64,
                                             4096, 4096, 128}));
}

TEST_F(MeasuredProductsFile, MistakesAreToldWithTheirPlace) {
  const std::string head = "precision,pass,m,n,k,us\n";
  for (const std::string& text :
       {head + "bf17,,8,16,32,1\n", head + "bf16,back,8,16,32,1\n", head + "bf16,,8,0,32,1\n",
        head + "bf16,,8,16,32,0\n", head, head + "bf16,,8,16,32,1\nbf16,,8,16,32,2\n",
        std::string("precision,pass,m,n,k\nbf16,,8,16,32\n"),
        std::string("precision,pass,m,n,k,ms\nbf16,,8,16,32,1\n")})
    EXPECT_MESSAGE(refused(text));
}

TEST_F(MeasuredProductsFile, IsNamedBesideTheClusterFileAndByWhatIsWrittenOfIt) {
  write("products.csv", "precision,pass,m,n,k,us\nbf16,,8,16,32,12\n");
  const Cluster cluster = read_cluster(write("cluster.yaml", kCluster));
  ASSERT_EQ(cluster.kinds[0].measured_products.rows.size(), 1u);
  fs::create_directories(folder_ / "elsewhere");
  const fs::path copy = folder_ / "elsewhere" / "hosts.yaml";
  std::ofstream(copy) << cluster_text(folder_ / "cluster.yaml", {});
  EXPECT_EQ(read_cluster(copy).kinds, cluster.kinds);
  const Network network = read_network(folder_ / "cluster.yaml");
  std::ofstream(copy, std::ios::trunc) << network_text(network);
  EXPECT_EQ(read_network(copy).device, network.device);
}

TEST_F(MeasuredProductsFile, AMissingFileIsToldAtTheKey) {
  fs::remove(folder_ / "products.csv");
  const fs::path file = write("cluster.yaml", kCluster);
  EXPECT_THAT(message_of([&] { read_cluster(file); }),
              ::testing::AllOf(::testing::HasSubstr("cluster.yaml:6:24"),
                               ::testing::HasSubstr("products.csv")));
}

TEST_F(MeasuredProductsFile, TheListToMeasureIsTheTableWithoutTimes) {
  EXPECT_EQ(products_text({{"bf16",
                            {.pass = ProductPass::Input, .groups = 1, .m = 8, .n = 16, .k = 32},
                            3,
                            ProductSource::Curve}}),
            "precision,operator,pass,groups,m,n,k\nbf16,product,input,1,8,16,32\n");
}

}  // namespace
}  // namespace pfeife
