#include "plots/screen/timeline_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "planner/ir/basics/grid.h"
#include "plots/figure/axis.h"
#include "plots/figure/theme.h"
#include "plots/timeline/panel_parts.h"

namespace pfeife {
namespace {

using namespace plots;

/// What a place shows; nullptr = idle.
using Place = const Event*;

/// The nearest of the 6 x 6 x 6 colours of a terminal with 256; grey stands for grey alone.
int terminal_colour(Color color) {
  constexpr std::array<int, 6> kLevels{0, 95, 135, 175, 215, 255};
  const int most = std::max({color.red, color.green, color.blue});
  const bool grey = most - std::min({color.red, color.green, color.blue}) < 24;
  int best = 0, least = 4 * 255 * 255;
  for (int i = 0; i < 216; ++i) {
    const std::array<int, 3> level{i / 36, i / 6 % 6, i % 6};
    if (!grey && level[0] == level[1] && level[1] == level[2]) continue;
    int distance = 0;
    for (const auto& [at, value] :
         {std::pair{level[0], color.red}, {level[1], color.green}, {level[2], color.blue}}) {
      const int off = kLevels[static_cast<std::size_t>(at)] - value;
      distance += off * off;
    }
    if (distance < least) least = distance, best = i;
  }
  return 16 + best;
}

std::string code(const char* ground, Color color) {
  return std::string(ground) + ";5;" + std::to_string(terminal_colour(color));
}
std::string in_colours(const std::string& text, const std::string& codes) {
  return "\033[" + codes + "m" + text + "\033[0m";
}

/// [rank] The stages that it computes, in order.
std::vector<std::set<StageId>> stages_of(const Trace& trace) {
  std::vector<std::set<StageId>> stages(trace.ranks);
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Compute)
      for_each_action(event.cell, [&](const Action& action) {
        stages[event.rank.index()].insert(action.stage);
      });
  return stages;
}

Color fill_of(const Action& action, const std::set<StageId>& stages) {
  const auto at =
      static_cast<std::size_t>(std::distance(stages.begin(), stages.lower_bound(action.stage)));
  return fill(paint(Event{.cell = action}), at, stages.size());
}

/// One colour, or two of actions at the same time.
std::vector<Color> fills_of(const Event& event, const std::set<StageId>& stages) {
  if (event.kind != TaskKind::Compute) return {fill(paint(event))};
  std::vector<Color> fills;
  for_each_action(event.cell,
                  [&](const Action& action) { fills.push_back(fill_of(action, stages)); });
  return fills;
}

class Rows {
 public:
  Rows(const Trace& trace, const TimelineTextOptions& options)
      : options_(options), rows_(trace.ranks), stages_(stages_of(trace)) {
    std::vector<Nanoseconds> times;
    std::size_t longest = 1;
    for (const Event& event : trace.events) {
      begin_ = std::min(begin_, event.start);
      if (event.kind != TaskKind::Compute && event.kind != TaskKind::Optimizer) continue;
      if (event.end <= event.start) continue;
      rows_[event.rank.index()].push_back(&event);
      times.push_back(event.end - event.start);
      if (!options.colour || paint(event) != Paint::Overlap)  // two colours bear no letters
        longest = std::max(longest, label(event, !options.colour).size());
    }
    for (auto& row : rows_) std::ranges::sort(row, {}, &Event::start);
    step_ = std::max(step_time(trace), Nanoseconds{1});
    name_width_ = ("rank " + std::to_string(std::max<std::size_t>(trace.ranks, 1) - 1)).size() + 2;
    std::size_t behind = 0;
    for (const std::string& text : options.behind) behind = std::max(behind, text.size() + 2);
    room_ = options.width - std::min(name_width_ + behind, options.width - 8);
    std::ranges::sort(times);
    choose_scale(times.empty() ? step_ : times[times.size() / 4], longest);
  }

  std::string text() const {
    std::string text;
    for (std::size_t from = 0; from < columns_; from += room_) {
      const std::size_t to = std::min(from + room_, columns_);
      text += (from > 0 ? "\n" : "") + axis(from, to);
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::string name = "rank " + std::to_string(r);
        name.resize(name_width_, ' ');
        std::string line = name + row(r, from, to) + behind(r + 1);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
      }
    }
    if (sampled_)
      text += wrapped("a place is longer than an action: it shows one of those that run in it",
                      options_.width);
    return text + (options_.colour ? legend() : "");
  }

 private:
  /// An action of that time gets its label, or a place of its own on several lines, if those are
  /// not too many.
  void choose_scale(Nanoseconds time, std::size_t longest) {
    constexpr double kMostLines = 8;
    const double actions = static_cast<double>(step_.count()) / static_cast<double>(time.count());
    const auto room = static_cast<double>(room_);
    const double least = actions * (options_.colour ? 0.5 : 1);
    labelled_ = actions * static_cast<double>(longest) <= room;
    sampled_ = !labelled_ && least > kMostLines * room;
    double columns = std::min(room, actions * static_cast<double>(longest + 1));
    if (!labelled_ && !sampled_) columns = room * std::ceil(least / room);
    columns_ = static_cast<std::size_t>(std::ceil(std::max(columns, 1.0)));
  }

  std::string behind(std::size_t row) const {
    return row < options_.behind.size() ? "  " + options_.behind[row] : "";
  }

  std::string axis(std::size_t from, std::size_t to) const {
    const TimeAxis axis = time_axis(step_, std::max<std::size_t>(2, columns_ / 10));
    std::string line = options_.unit.empty() ? axis.unit == "µs" ? "us" : axis.unit : options_.unit;
    line.resize(name_width_, ' ');
    for (const Nanoseconds tick : axis.ticks) {
      const std::string words = exact(tick, axis);
      const std::size_t column = place(tick, columns_), at = name_width_ + column - from;
      if (column < from || column + words.size() > to || at < line.size()) continue;
      line.resize(at, ' ');
      line += words;
    }
    if (!options_.behind.empty()) line.resize(name_width_ + to - from, ' ');
    line += behind(0);
    return line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }

  /// The place in which the time lies, if there are so many.
  std::size_t place(Nanoseconds time, std::size_t places) const {
    const double share = static_cast<double>(time.count()) / static_cast<double>(step_.count());
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(places)));
  }

  /// [place] What runs there.
  std::vector<Place> places(std::size_t rank, std::size_t count) const {
    std::vector<Place> found(count, nullptr);
    if (sampled_) return sampled(rank, std::move(found));
    for (const Event* event : rows_[rank])
      for (std::size_t at = place(event->start - begin_, count);
           at < std::min(count, place(event->end - begin_, count)); ++at)
        found[at] = event;
    return found;
  }

  /// At a moment of each place that goes along with none that an order repeats in.
  std::vector<Place> sampled(std::size_t rank, std::vector<Place> found) const {
    auto event = rows_[rank].begin();
    for (std::size_t at = 0; at < found.size(); ++at) {
      const auto along = std::fmod(static_cast<double>(at) * std::numbers::phi, 1.0);
      const Nanoseconds time{static_cast<std::int64_t>((static_cast<double>(at) + along) /
                                                       static_cast<double>(found.size()) *
                                                       static_cast<double>(step_.count()))};
      while (event != rows_[rank].end() && (*event)->end - begin_ <= time) ++event;
      if (event != rows_[rank].end() && (*event)->start - begin_ <= time) found[at] = *event;
    }
    return found;
  }

  std::string row(std::size_t rank, std::size_t from, std::size_t to) const {
    if (options_.colour && !labelled_) return halves(rank, from, to);
    const std::vector<Place> shown = places(rank, columns_);
    std::string line;
    for (std::size_t at = from, end; at < to; at = end) {
      for (end = at + 1; end < to && shown[end] == shown[at];) ++end;
      line += options_.colour ? box(shown[at], rank, end - at) : plain(shown[at], end - at);
    }
    return line;
  }

  std::string plain(Place event, std::size_t size) const {
    if (event == nullptr) return std::string(size, '.');
    std::string words = label(*event, true);
    if (words.size() > size) words = letter(paint(*event)).substr(0, 1);
    const bool apart = labelled_ && size > words.size();
    words.resize(size, '-');
    if (apart) words.back() = ' ';
    return words;
  }

  std::string box(Place event, std::size_t rank, std::size_t size) const {
    if (event == nullptr) return std::string(size, ' ');
    const std::vector<Color> fills = fills_of(*event, stages_[rank]);
    if (fills.size() > 1) return repeated("▀", size, fills[0], fills[1]);
    std::string words = label(*event, false);
    if (words.size() > size) words.clear();
    words.insert(0, (size - words.size()) / 2, ' ');
    words.resize(size, ' ');
    return in_colours(words, code("38", ink_on(fills[0])) + ";" + code("48", fills[0]));
  }

  /// Two places a character.
  std::string halves(std::size_t rank, std::size_t from, std::size_t to) const {
    std::string line;
    const std::vector<Place> shown = places(rank, 2 * columns_);
    const auto fills = [&](Place event) { return fills_of(*event, stages_[rank]); };
    for (std::size_t at = 2 * from; at < 2 * to; at += 2) {
      const Place left = shown[at], right = shown[at + 1];
      if (left == nullptr && right == nullptr)
        line += " ";
      else if (left == nullptr)
        line += in_colours("▐", code("38", fills(right)[0]));
      else if (right == nullptr)
        line += in_colours("▌", code("38", fills(left)[0]));
      else if (left == right && fills(left).size() > 1)
        line += repeated("▀", 1, fills(left)[0], fills(left)[1]);
      else
        line += repeated("▌", 1, fills(left)[0], fills(right)[0]);
    }
    return line;
  }

  static std::string repeated(const std::string& sign, std::size_t count, Color front, Color back) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += sign;
    return in_colours(text, code("38", front) + ";" + code("48", back));
  }

  std::string legend() const {
    std::set<Paint> seen;
    bool overlap = false;
    for (const auto& row : rows_)
      for (const Event* event : row) {
        if (paint(*event) == Paint::Overlap) {
          overlap = true;
          for_each_action(event->cell,
                          [&](const Action& part) { seen.insert(paint(Event{.cell = part})); });
        } else {
          seen.insert(paint(*event));
        }
      }
    const std::string margin(name_width_, ' ');
    std::string text = margin;
    std::size_t used = name_width_;
    const auto add = [&](const std::string& shown, std::size_t size) {
      if (used + size > options_.width) text += "\n" + margin, used = name_width_;
      text += shown + "  ";
      used += size + 2;
    };
    for (const Paint kind : seen)
      add(in_colours(" " + letter(kind) + " ",
                     code("38", ink_on(fill(kind))) + ";" + code("48", fill(kind))) +
              " " + name(kind),
          letter(kind).size() + name(kind).size() + 3);
    if (overlap) add("halves: two at once", 19);
    return text.substr(0, text.size() - 2) + "\n";
  }

  const TimelineTextOptions& options_;
  std::vector<std::vector<const Event*>> rows_;
  std::vector<std::set<StageId>> stages_;
  Nanoseconds begin_ = Nanoseconds::max(), step_{1};
  std::size_t name_width_ = 0, room_ = 0, columns_ = 0;  ///< columns_: on all lines together
  bool labelled_ = false, sampled_ = false;
};

}  // namespace

std::string timeline_text(const Trace& trace, const TimelineTextOptions& options) {
  return Rows(trace, options).text();
}

}  // namespace pfeife
