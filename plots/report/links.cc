#include "plots/report/links.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "plots/figure/html.h"
#include "plots/figure/svg.h"

namespace pfeife::plots {
namespace {

constexpr std::size_t kMostRows = 32;

/// Devices first .. last, which no path tells apart.
struct Block {
  std::size_t first = 0, last = 0;
};

const Path& path(const Cluster& cluster, std::size_t from, std::size_t to) {
  return cluster.paths[from * cluster.devices() + to];
}

bool equal(const Path& a, const Path& b) {
  return a.latency == b.latency && a.bandwidth == b.bandwidth;
}

/// All others have the same paths to and from both, and they to each other.
bool alike(const Cluster& cluster, std::size_t a, std::size_t b) {
  for (std::size_t k = 0; k < cluster.devices(); ++k)
    if (k != a && k != b &&
        !(equal(path(cluster, a, k), path(cluster, b, k)) &&
          equal(path(cluster, k, a), path(cluster, k, b))))
      return false;
  return equal(path(cluster, a, b), path(cluster, b, a));
}

std::vector<Block> blocks_of(const Cluster& cluster) {
  std::vector<Block> blocks;
  for (std::size_t d = 0; d < cluster.devices(); ++d) {
    if (!blocks.empty() && alike(cluster, blocks.back().first, d))
      blocks.back().last = d;
    else
      blocks.push_back({d, d});
  }
  return blocks;
}

std::string name_of(const Block& block) {
  return std::to_string(block.first) +
         (block.last > block.first ? "-" + std::to_string(block.last) : "");
}

std::string link_text(const Path& path) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.4g GB/s", path.bandwidth.points.back().rate.value / 1e9);
  return std::string(rate) + ", " + to_string(path.latency);
}

std::string cell(const Cluster& cluster, const Block& from, const Block& to) {
  if (from.first != to.first) return link_text(path(cluster, from.first, to.first));
  return from.last > from.first ? link_text(path(cluster, from.first, from.first + 1)) : "-";
}

}  // namespace

std::string links_table(const Cluster& cluster) {
  if (cluster.devices() < 2) return "";
  std::vector<Block> blocks = blocks_of(cluster);
  const std::size_t all = blocks.size();
  blocks.resize(std::min(all, kMostRows));
  std::vector<HtmlColumn> columns{{"from device", false}};
  for (const Block& to : blocks) columns.push_back({"to " + name_of(to), false});
  std::vector<HtmlRow> rows;
  for (const Block& from : blocks) {
    HtmlRow row{{{name_of(from), std::to_string(from.first), "", ""}}};
    for (const Block& to : blocks)
      row.cells.push_back({escape(cell(cluster, from, to)), "", "", ""});
    rows.push_back(std::move(row));
  }
  const std::string rest =
      all > kMostRows
          ? "The devices from " + std::to_string(blocks.back().last + 1) + " on are left out."
          : "";
  return table(columns, rows) + (rest.empty() ? "" : element("p", rest, " class=\"muted\""));
}

}  // namespace pfeife::plots
