#include "plots/report/link_loads.h"

#include "planner/ir/basics/round_down.h"
#include "plots/figure/axis.h"
#include "plots/figure/html.h"
#include "plots/figure/svg.h"
#include "plots/screen/links.h"

namespace pfeife::plots {
namespace {

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
