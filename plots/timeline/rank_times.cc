#include <algorithm>
#include <array>

#include "plots/figure/axis.h"
#include "plots/figure/svg.h"
#include "plots/timeline/pictures.h"

namespace pfeife {
namespace {

using namespace plots;

constexpr double kMargin = 12, kLabels = 34, kHead = 20, kGap = 10, kLegend = 18;

/// What a rank computes by kind of action, and when it begins and ends.
struct Computed {
  std::array<Nanoseconds, kPaints> time{};
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min(), total{0};
  Nanoseconds sent{
      0};  ///< of the wait for the first: until its transfer was done, from when it could
};

Computed computed(const Trace& trace, RankId rank) {
  Computed found;
  for (const Event& event : trace.events) {
    if (event.rank != rank || event.kind != TaskKind::Compute) continue;
    const Nanoseconds time = event.end - event.start - event.launch;
    found.time[static_cast<std::size_t>(paint(event))] += time;
    found.total += time;
    if (event.start < found.first) {
      const Event* cause = event.waited_for ? &trace.events[*event.waited_for] : nullptr;
      const bool transfer = cause != nullptr && cause->kind == TaskKind::Transfer;
      found.sent = transfer ? cause->end - cause->posted : Nanoseconds{0};
      found.first = event.start;
    }
    found.last = std::max(found.last, event.end);
  }
  return found;
}

double row_height(std::size_t ranks) { return ranks <= 8 ? 14 : ranks <= 32 ? 8 : 4; }

void draw_bar(Svg& svg, const std::vector<Cause>& causes, double top, double height, double left,
              double pixels_per_ns, const std::string& who) {
  Nanoseconds done{0}, total{0};
  for (const Cause& cause : causes) total += cause.time;
  for (const Cause& cause : causes) {
    const double from = left + static_cast<double>(done.count()) * pixels_per_ns;
    done += cause.time;
    const double width = left + static_cast<double>(done.count()) * pixels_per_ns - from;
    if (width < 0.05) continue;
    const std::string share = percent(static_cast<double>(cause.time.count()) /
                                      static_cast<double>(std::max(total, Nanoseconds{1}).count()));
    svg.raw("<rect class=\"cause\" x=\"" + coordinate(from) + "\" y=\"" + coordinate(top) +
            "\" width=\"" + coordinate(width) + "\" height=\"" + coordinate(height) + "\" fill=\"" +
            hex(cause.fill) + "\" stroke=\"" + hex(kEdge) + "\" stroke-width=\"0.6\"><title>" +
            escape(who + cause.name + ", " + rounded(cause.time) + ", " + share) +
            "</title></rect>\n");
    if (height >= 12 && text_width(share, 9.5) + 6 <= width)
      svg.text(from + width / 2, top + height / 2 + 3.4, share,
               {.size = 9.5, .anchor = Anchor::Middle, .color = ink_on(cause.fill)});
  }
}

}  // namespace

std::vector<Cause> rank_times(const Trace& trace, RankId rank) {
  const Attribution whole = attribution(trace, rank);
  const Computed own = computed(trace, rank);
  Nanoseconds origin = Nanoseconds::max(), end = Nanoseconds::min(), busiest{0};
  for (const Event& event : trace.events)
    origin = std::min(origin, event.start), end = std::max(end, event.end);
  for (std::size_t r = 0; r < trace.ranks; ++r)
    busiest = std::max(busiest, computed(trace, RankId{r}).total);
  Nanoseconds waits = whole.dependency_wait;
  const auto take = [&](Nanoseconds most) {
    const Nanoseconds taken = std::clamp(most, Nanoseconds{0}, waits);
    waits -= taken;
    return taken;
  };
  const bool computes = own.last >= own.first;
  const Nanoseconds warm_up = take(computes ? own.first - origin - own.sent : Nanoseconds{0});
  const Nanoseconds cool_down = take(computes ? end - own.last : Nanoseconds{0});
  const Nanoseconds imbalance = take(busiest - own.total);
  std::vector<Cause> causes;
  Nanoseconds kinds{0};
  for (const Paint kind : compute_paints()) {
    causes.push_back({name(kind), own.time[static_cast<std::size_t>(kind)], fill(kind)});
    kinds += causes.back().time;
  }
  // Computations that overlap on a rank (measured ones may) are attributed once.
  causes[0].time += whole.compute - kinds;
  causes.push_back({"optimizer", whole.optimizer, fill(Paint::Optimizer)});
  causes.push_back({"reduction", whole.reduction, fill(Paint::Reduction)});
  causes.push_back({"launch", whole.launch, kLaunch});
  causes.push_back({"transfer", whole.exposed_transfer, fill(Paint::SendBackward)});
  causes.push_back({"waiting in a queue", whole.queue_wait, fill(Paint::SendForward)});
  causes.push_back({"idle: imbalance", imbalance, kImbalance.light});
  causes.push_back({"idle: warm-up", warm_up, kWarmUp.light});
  causes.push_back({"idle: steady state", waits, kSteadyState.light});
  causes.push_back({"idle: cool-down", cool_down, kCoolDown.light});
  return causes;
}

std::string rank_times_svg(std::span<const ComparedPlan> plans, int width) {
  const double whole = std::max(320, width), left = kMargin + kLabels, right = whole - kMargin - 80;
  Nanoseconds longest{1};
  std::vector<bool> present;
  std::vector<Cause> kinds;
  std::vector<std::vector<std::vector<Cause>>> bars;  // [plan][rank]
  for (const ComparedPlan& plan : plans) {
    longest = std::max(longest, step_time(plan.trace));
    auto& ranks = bars.emplace_back();
    for (std::size_t r = 0; r < plan.trace.ranks; ++r) {
      ranks.push_back(rank_times(plan.trace, RankId{r}));
      kinds = ranks.back();
      present.resize(kinds.size());
      for (std::size_t k = 0; k < kinds.size(); ++k)
        present[k] = present[k] || 1000 * ranks.back()[k].time.count() > longest.count();
    }
  }
  Svg svg;
  double x = kMargin, y = 6;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (!present[k]) continue;
    const double entry = 19 + text_width(kinds[k].name, 10.5) + 12;
    if (x > kMargin && x + entry > whole - kMargin) x = kMargin, y += kLegend;
    svg.rect(x, y + 3, 14, 12, kinds[k].fill).text(x + 19, y + 13, kinds[k].name, {.size = 10.5});
    x += entry;
  }
  y += kLegend + 4;
  const double pixels = (right - left) / static_cast<double>(longest.count());
  const TimeAxis unit = time_axis(longest, 2);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const double height = row_height(plans[p].trace.ranks), gap = height >= 8 ? 2 : 0.5;
    svg.text(kMargin, y + 13, shortened(plans[p].name, 11.5, right - kMargin - 40),
             {.size = 11.5, .bold = true});
    svg.text(whole - kMargin, y + 13,
             to_string(plans[p].trace.source) + " " + rounded(step_time(plans[p].trace), unit),
             {.size = 11, .anchor = Anchor::End});
    y += kHead;
    for (std::size_t r = 0; r < bars[p].size(); ++r) {
      if (height >= 8)
        svg.text(left - 6, y + height / 2 + 3.5, std::to_string(r),
                 {.size = std::min(10.0, height + 1), .anchor = Anchor::End, .color = kMuted});
      draw_bar(svg, bars[p][r], y, height, left, pixels, "rank " + std::to_string(r) + ": ");
      y += height + gap;
    }
    y += kGap;
  }
  return svg.document(whole, y, "where the time of each rank goes");
}

}  // namespace pfeife
