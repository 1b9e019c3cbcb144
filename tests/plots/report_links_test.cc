// What the report says of links, by hand.
#include <gtest/gtest.h>

#include "plots/report/links.h"
#include "tests/plots/table_cells.h"

namespace pfeife {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Two nodes of two devices: 300 GB/s and 1 us within, 10 GB/s and 9 us between.
Cluster two_nodes() {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {10e9}, Nanoseconds{9000});
  for (const auto& [a, b] : {std::pair(0, 1), {1, 0}, {2, 3}, {3, 2}}) {
    Path& path = cluster.paths[static_cast<std::size_t>(a * 4 + b)];
    path.latency = Nanoseconds{1000}, path.bandwidth = {{{Bytes{1}, {300e9}}}};
  }
  return cluster;
}

TEST(ReportLinks, DevicesThatNoPathTellsApartShareARow) {
  EXPECT_EQ(cells(plots::links_table(two_nodes())),
            (Rows{{"from device", "to 0-1", "to 2-3"},
                  {"0-1", "300 GB/s, 1 us", "10 GB/s, 9 us"},
                  {"2-3", "10 GB/s, 9 us", "300 GB/s, 1 us"}}));
}

TEST(ReportLinks, AOneWayDifferenceParts) {
  Cluster cluster = two_nodes();
  cluster.paths[3 * 4 + 0].latency = Nanoseconds{8000};  // from 3 to 0 alone
  EXPECT_EQ(cells(plots::links_table(cluster)).size(), 1U + 4U);
  EXPECT_EQ(cells(plots::links_table(cluster))[4][1], "10 GB/s, 8 us");
}

TEST(ReportLinks, ASingleDeviceHasNone) {
  EXPECT_EQ(plots::links_table(uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{1})), "");
}

}  // namespace
}  // namespace pfeife
