#include "plots/report/packed.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "planner/ir/basics/utf8.h"
#include "plots/figure/svg.h"
#include "plots/figure/theme.h"

namespace pfeife::plots {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void write_digits(std::string& text, std::uint64_t value) {
  for (; value >= 32; value >>= 5) text += kDigits[32 | (value & 31)];
  text += kDigits[value];
}

/// What was there before is named by its place.
std::string with_repeats(const std::string& text) {
  constexpr std::size_t kKey = 8, kLeast = 10;
  std::unordered_map<std::string_view, std::size_t> seen;
  const std::string_view all = text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 0, from = 0;
    if (i + kKey <= text.size()) {
      const auto [at, is_new] = seen.try_emplace(all.substr(i, kKey), i);
      if (!is_new) {
        from = at->second;
        while (i + length < text.size() && text[from + length] == text[i + length]) ++length;
        at->second = i;
      }
    }
    if (length < kLeast) {
      out += text[i++];
      continue;
    }
    out += '!';
    write_digits(out, i - from);
    write_digits(out, length);
    i += length;
  }
  return out;
}

/// The microbatch of an event in a text where microbatches are marked.
constexpr std::int32_t kMarked = 987'654'321;

/// Slices of a stage are classes of their own: "0F#.1".
std::string class_text(Cell cell) {
  std::vector<std::string> marks;
  const auto mark = [&](Action& action) {
    if (!action.microbatch) return;
    const MicrobatchId m = *action.microbatch;
    marks.push_back(m.slices == 1 ? "#" : "#." + std::to_string(m.slice()));
    action.microbatch = MicrobatchId{kMarked};
  };
  if (auto* action = std::get_if<Action>(&cell)) mark(*action);
  if (auto* overlap = std::get_if<Overlap>(&cell)) std::ranges::for_each(overlap->parts, mark);
  std::string text = to_string(cell);
  const std::string number = std::to_string(kMarked);
  for (const std::string& marked : marks) text.replace(text.find(number), number.size(), marked);
  return text;
}

Bytes bytes_of(const Event& event, const StageCosts& costs) {
  const auto* action = std::get_if<Action>(&event.cell);
  if (action == nullptr) return Bytes{0};
  if (event.kind == TaskKind::Transfer && action->peer) {
    const bool forward = action->direction == Direction::Forward;
    const StagePair* pair =
        forward ? find_pair(costs, action->stage, *action->peer, action->microbatch)
                : find_pair(costs, *action->peer, action->stage, action->microbatch);
    if (pair != nullptr) return forward ? pair->bytes : pair->gradient_bytes;
  }
  if (event.kind == TaskKind::Copy) return stage_cost(costs, *action, false).offloaded;
  if (event.kind == TaskKind::Reduction && action->op == Op::ReduceGrad)
    for (const StageReduction& reduction : costs.reductions)
      if (std::ranges::find(reduction.stages, action->stage) != reduction.stages.end())
        return reduction.bytes;
  return Bytes{0};
}

std::string class_json(const Event& event, const std::string& text, const StageCosts& costs) {
  std::string json = "[" + json_text(text) + "," + std::to_string(static_cast<int>(event.kind)) +
                     "," + to_string(event.rank) + "," + to_string(event.peer) + "," +
                     std::to_string(bytes_of(event, costs).value) + ",[";
  for (const RankId& party : event.parties)
    json += (&party == event.parties.data() ? "" : ",") + to_string(party);
  std::string parts;
  for_each_action(event.cell, [&](const Action& action) {
    Event part;
    part.kind = event.kind, part.cell = action;
    const Paint kind = paint(part);
    parts += (parts.empty() ? "[" : ",[") + std::to_string(static_cast<int>(kind)) + "," +
             to_string(action.stage) + "]";
  });
  return json + "],[" + parts + "]]";
}

std::string string_json(std::span<const std::int64_t> numbers) {
  return "\"" + packed(numbers) + "\"";
}

/// What the latest event of a class had, so that only changes are written.
struct Latest {
  std::vector<std::int64_t> micro;
  std::int64_t time = 0, launch = 0, waits = 0, which = 0, count = 0;
};

struct Column {
  std::vector<std::int64_t> numbers;
  void change(std::int64_t& latest, std::int64_t now) {
    numbers.push_back(now - latest);
    latest = now;
  }
};

struct Columns {
  Column event, micro, time, launch, waits, which, start, queued;
};

std::string events_json(const Trace& trace, const StageCosts& costs, Nanoseconds origin) {
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> number(trace.events.size());  // of the class
  std::vector<std::int64_t> place(trace.events.size());  // within it
  std::vector<Latest> classes;
  std::string json;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const std::string text = class_text(event.cell);
    std::string key = text + " " + std::to_string(static_cast<int>(event.kind));
    for (const RankId rank : {event.rank, event.peer}) key += " " + to_string(rank);
    const auto [at, is_new] = known.try_emplace(key, classes.size());
    if (is_new) {
      json += (classes.empty() ? "" : ",") + class_json(event, text, costs);
      classes.emplace_back();
    }
    number[i] = at->second;
    place[i] = classes[at->second].count++;
  }
  Columns columns;
  std::int64_t class_before = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    Latest& latest = classes[number[i]];
    columns.event.change(class_before, static_cast<std::int64_t>(number[i]));
    std::size_t part = 0;
    for_each_action(event.cell, [&](const Action& action) {
      if (!action.microbatch) return;
      if (latest.micro.size() <= part) latest.micro.push_back(-1);
      columns.micro.numbers.push_back(action.microbatch->microbatch() - latest.micro[part] - 1);
      latest.micro[part++] = action.microbatch->microbatch();
    });
    columns.time.change(latest.time, (event.end - event.start).count());
    columns.launch.change(latest.launch, event.launch.count());
    const bool waited = event.waited_for && *event.waited_for < trace.events.size();
    const std::size_t cause = waited ? *event.waited_for : 0;
    columns.waits.change(latest.waits, waited ? 1 + static_cast<std::int64_t>(number[cause]) : 0);
    if (waited) columns.which.change(latest.which, place[cause] - place[i]);
    columns.start.numbers.push_back(
        (event.start - (waited ? trace.events[cause].end : origin)).count());
    columns.queued.numbers.push_back(
        event.kind == TaskKind::Transfer ? (event.start - event.posted).count() : 0);
  }
  json = "\"classes\":[" + json + "]";
  for (const auto& [name, column] : {std::pair{"event", &columns.event},
                                     {"micro", &columns.micro},
                                     {"time", &columns.time},
                                     {"launch", &columns.launch},
                                     {"waits", &columns.waits},
                                     {"which", &columns.which},
                                     {"start", &columns.start},
                                     {"queued", &columns.queued}})
    json += ",\"" + std::string(name) + "\":" + string_json(column->numbers);
  return json;
}

constexpr std::size_t kMostLinks = 8;

}  // namespace

std::string packed(std::span<const std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    write_digits(text, number < 0 ? 2 * static_cast<std::uint64_t>(-(number + 1)) + 1
                                  : 2 * static_cast<std::uint64_t>(number));
  return with_repeats(text);
}

std::string json_text(std::string_view text) {
  constexpr std::string_view kCoded = "\"\\<>&/\x7f";
  std::string json = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      json += "\\ufffd";
    } else if (byte < 0x20 || kCoded.find(text[0]) != kCoded.npos) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(byte));
      json += code;
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(std::max(length, std::size_t{1}));
  }
  return json + "\"";
}

std::string packed_trace(const Trace& trace, const StageCosts& costs) {
  Nanoseconds origin{0};
  for (const Event& event : trace.events)
    origin = &event == trace.events.data() ? event.start : std::min(origin, event.start);
  std::string json = "{\"source\":" + json_text(to_string(trace.source)) +
                     ",\"ranks\":" + std::to_string(trace.ranks) + "," +
                     events_json(trace, costs, origin) + ",\"memory\":[";
  for (const std::vector<MemorySample>& samples : trace.memory) {
    std::vector<std::int64_t> numbers;
    MemorySample before{origin, Bytes{0}};
    for (const MemorySample& sample : samples) {
      numbers.push_back((sample.time - before.time).count());
      numbers.push_back(sample.bytes.value - before.bytes.value);
      before = sample;
    }
    json += (&samples == trace.memory.data() ? "" : ",") + string_json(numbers);
  }
  json += "],\"links\":[";
  std::vector<const LinkLoad*> links;
  for (const LinkLoad& link : trace.links) links.push_back(&link);
  std::ranges::stable_sort(links, std::greater<>(), [](const LinkLoad* link) {
    return std::pair(link->slowed, link->bytes);
  });
  links.resize(std::min(links.size(), kMostLinks));
  for (const LinkLoad* const loaded : links) {
    const LinkLoad& link = *loaded;
    std::vector<std::int64_t> numbers;
    std::int64_t share = 0;
    Nanoseconds time = origin;
    for (const LoadSample& sample : link.samples) {
      const auto now = static_cast<std::int64_t>(std::lround(1000 * sample.share));
      numbers.push_back((sample.time - time).count());
      numbers.push_back(now - share);
      time = sample.time, share = now;
    }
    json += (loaded == links.front() ? "[" : ",[") + json_text(link.link) + "," +
            fixed(link.capacity.value, 0) + "," + std::to_string(link.slowed.count()) + "," +
            string_json(numbers) + "]";
  }
  return json + "]}";
}

}  // namespace pfeife::plots
