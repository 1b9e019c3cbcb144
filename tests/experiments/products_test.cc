// `pfeife-exp products`, as a user types it, and what a cluster file with measured products
// changes.
#include <gmock/gmock.h>

#include <sstream>

#include "planner/io/files/csv_table.h"
#include "planner/io/files/text_file.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class Products : public ProgramTest {
 protected:
  void write_mesh(const std::string& cluster) {
    write("mesh.yaml",
          "version: 1\nmodel: " + (configs() / "architectures/llama3_8b.yaml").string() +
              "\ncluster: " + cluster +
              "\ntraining: {global_batch: 16, microbatch_size: 1}\n"
              "parallel: {devices: 8, tp: [4, 8], cp: 1, pp: 1, zero: 1, "
              "recompute: none}\n");
  }
  static std::string hosts() { return (configs() / "clusters/h100_sxm_hosts.yaml").string(); }
};

// tp 4 and 8, each with q, k or v (one shape), projection, gate and up, down, head, three passes
// each, and attention both ways; nothing is of one shape in both.
TEST_F(Products, AreThoseOfTheBestMeshesOnce) {
  write_mesh(hosts());
  const Outcome all = run({"products", "mesh.yaml"});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(CsvTable::parse({"all", all.out}).rows(), 2U * (6 * 3 + 2));
  const Outcome best = run({"products", "mesh.yaml", "--meshes", "1"});
  EXPECT_EQ(CsvTable::parse({"best", best.out}).rows(), 6U * 3 + 2);
}

// 32 layers of 20 products, and three of the head. Each listed one is given a time; then none is by
// the curve, and none is missing.
TEST_F(Products, WithTimesAreWhatAClusterFileTakes) {
  write_mesh(hosts());
  std::istringstream listed(run({"products", "mesh.yaml"}).out);
  std::string measured, line;
  std::getline(listed, line);
  measured = line + ",us\n";
  while (std::getline(listed, line)) measured += line + ",100\n";
  write("mine.csv", measured);
  std::string cluster = read_text_file(hosts()).text;
  const std::string at = "    kernel_overhead:";
  cluster.insert(cluster.find(at), "    measured_products: mine.csv\n");
  write("mine.yaml", cluster);
  write_mesh("mine.yaml");
  const Outcome missing = run({"products", "mesh.yaml", "--missing"});
  EXPECT_EQ(missing.out, "precision,operator,pass,groups,m,n,k\n") << missing.err;
  const Outcome planned = run({"mesh.yaml", "--out", "out"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("of a microbatch's 643 products 643 as measured, 0 interp"));
}

TEST_F(Products, OfATableOfLayersAreRefused) {
  write("layers.csv", "name,forward_ms,backward_ms\na,1,2\nb,1,2\n");
  write("table.yaml",
        "version: 1\nmodel: layers.csv\ncluster: " + (configs() / "clusters/laptop.yaml").string() +
            "\ncases: {devices: 2}\n");
  const Outcome outcome = run({"products", "table.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the model's times are given"));
}

}  // namespace
}  // namespace pfeife
