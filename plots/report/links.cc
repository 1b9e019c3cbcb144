#include "plots/screen/links.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "planner/ir/basics/round_down.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/report/parts.h"

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

const std::string kNoHelp = "a faster network would not help: by less than 1 % of the step";

HtmlCell time_cell(Nanoseconds time) {
  return {fixed(milliseconds(time), table_decimals(time)), std::to_string(time.count()), "",
          std::to_string(time.count()) + " ns"};
}

std::string loads_table(const LinksRecord& links) {
  std::vector<HtmlRow> rows;
  for (const LinkUse& use : links.links)
    rows.push_back({{{escape(use.link), "", "", ""},
                     {percent(use.mean_load), fixed(use.mean_load, 9), "", ""},
                     {fixed(use.capacity / 1e9, 2), fixed(use.capacity, 0), "", ""},
                     {escape(rounded(use.bytes)), std::to_string(use.bytes.value), "", ""},
                     time_cell(use.slowed)}});
  return table({{"Link"},
                {"Mean load", true},
                {"Capacity GB/s", true},
                {"Sent", true},
                {"Slows its transfers by, ms", true}},
               rows);
}

std::string slowed_table(const LinksRecord& links) {
  std::vector<HtmlRow> rows;
  for (const SlowedMessages& slowed : links.slowed)
    rows.push_back(
        {{{std::to_string(slowed.from) + " → " + std::to_string(slowed.to),
           std::to_string(slowed.from), "", ""},
          {std::to_string(slowed.count), "", "", ""},
          time_cell(slowed.alone),
          time_cell(slowed.mean),
          time_cell(slowed.longest),
          time_cell(static_cast<std::int64_t>(slowed.count) * (slowed.mean - slowed.alone))}});
  return table({{"Stages"},
                {"Messages", true},
                {"Each alone (estimated), ms", true},
                {"Simulated mean, ms", true},
                {"Simulated longest, ms", true},
                {"Longer in all by, ms", true}},
               rows);
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

std::string links_section(const LinksRecord& links) {
  const std::string faster = faster_network_sentence(links);
  std::string items;
  for (const std::string& sentence : {sharing_sentence(links), faster.empty() ? kNoHelp : faster})
    if (!sentence.empty()) items += element("li", escape(sentence));
  std::string text = element("h3", "How full each link is, simulated") +
                     element("div", element("ul", items), " class=\"notes\"");
  text += loads_table(links);
  if (!links.slowed.empty())
    text += element("h3", "Messages that last longer than alone, because links are shared") +
            slowed_table(links);
  return text;
}

}  // namespace pfeife::plots
