#include "planner/io/traces/profile_reader.h"

#include <charconv>
#include <map>
#include <set>

#include "planner/io/traces/profiler_events.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int32_t kOnlyStage = -1;
constexpr std::size_t kLongestName = 200;  // of an action
constexpr std::string_view kOurProcess = "measured: rank ";

/// The action whose name stands behind "Forward " or "Backward ".
std::optional<Cell> gpipe_action(std::string_view name) {
  const bool forth = name.starts_with("Forward ");
  if (!forth && !name.starts_with("Backward ")) return std::nullopt;
  const std::string_view number = name.substr(name.find(' ') + 1);
  std::int32_t microbatch = -1;
  const char* end = number.data() + number.size();
  if (std::from_chars(number.data(), end, microbatch).ptr != end || microbatch < 0)
    return std::nullopt;
  return Action{.op = forth ? Op::Forward : Op::Backward,
                .stage = StageId{kOnlyStage},
                .microbatch = MicrobatchId{microbatch}};
}

/// What a range is called, as an action; none if it is no action that is looked at.
std::optional<Cell> action_named(std::string_view name) {
  if (name.starts_with("PP:")) name.remove_prefix(3);
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  if (name.starts_with("Optimizer.step#"))
    return stage_action(Op::OptimizerStep, StageId{kOnlyStage});
  if (name[0] == 'F' || name[0] == 'B') return gpipe_action(name);
  if (name[0] != '(' && (name[0] < '0' || name[0] > '9')) return std::nullopt;
  const ParsedCell parsed = parse_cell(name);
  if (!parsed.cell || std::holds_alternative<std::monostate>(*parsed.cell)) return std::nullopt;
  if (const auto* action = std::get_if<Action>(&*parsed.cell))
    if (!is_compute(action->op) && action->op != Op::Send && action->op != Op::OptimizerStep)
      return std::nullopt;
  return parsed.cell;
}

bool contains(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}
bool is_communication(const std::string& name) {
  return name.starts_with("c10d::") || name.starts_with("gloo:") || name.starts_with("nccl") ||
         contains(name, "ncclDevKernel") || contains(name, "ncclKernel") ||
         name == "record_param_comms";
}

bool is_send(const Cell& cell) {
  const auto* action = std::get_if<Action>(&cell);
  return action != nullptr && action->op == Op::Send;
}

/// Collects what is looked at of one file.
class Profile {
 public:
  explicit Profile(const std::filesystem::path& file) : file_(file.string()) {}

  void see(const ProfilerEvent& event) {
    if (event.phase == 'M') {
      if (event.name == "process_name") name_process(event);
    } else if (event.phase == 'X') {
      if (event.start) see(event, {*event.start, *event.start + event.duration});
    } else if (event.phase == 'B' && event.start) {
      open(event);
    } else if (event.phase == 'E' && event.start) {
      close(event);
    }
  }

  std::vector<ObservedRank> ranks(const ProfilerHead& head, std::size_t clock) {
    if (!ours_.empty()) return our_ranks(clock);
    ObservedRank rank{.file = file_, .clock = clock, .rank = checked(rank_of(head))};
    for (const Range& range : on_device_) add_on_device(range, rank);
    std::set<Cell> shown;
    for (const ObservedAction& action : rank.actions) shown.insert(action.cell);
    for (const Range& range : ranges_)
      if (!shown.contains(range.cell)) add_on_host(range, rank);
    if (rank.actions.empty() || (on_device_.empty() && !kernels_.empty()))
      throw ConfigError(
          {file_}, kernels_.empty() || ranges_.empty()
                       ? "has no ranges that are named like actions, as \"0F0\", \"PP:0F0\" or "
                         "\"Forward 0\"; wrap the actions in torch.profiler.record_function "
                         "(experiments/studies/torch_traces/README.md)"
                       : "has kernels, but no ranges of actions on the device "
                         "(gpu_user_annotation); record with ProfilerActivity.CUDA and CPU");
    for (ObservedAction& action : rank.actions) {
      action.start += head.base, action.end += head.base;
      check_time(action);
    }
    return {std::move(rank)};
  }

 private:
  struct Range {
    Cell cell;
    Interval time;
    std::int64_t stream = -1;
  };
  // What is kept of a file, however small its packed form: about half a gigabyte at most.
  static constexpr std::size_t kMostOpen = 10'000;
  static constexpr std::size_t kMostActions = 1'000'000;
  static constexpr std::size_t kMostWork = 10'000'000;  ///< operators and kernels not in others
  static constexpr std::size_t kMostRanks = 1'000'000;

  /// `kept`: how many there are of `what` already.
  void require_room(std::size_t kept, std::size_t most, const std::string& what,
                    const std::string& remedy) const {
    if (kept >= most)
      throw ConfigError({file_}, stream_all("has more than ", most, " ", what, "; ", remedy));
  }

  void name_process(const ProfilerEvent& event) {
    if (!event.label.starts_with(kOurProcess)) return;
    require_room(processes_.size(), kMostRanks, "processes", "give a trace of one run");
    processes_[event.process] = event.label.substr(0, kLongestName);
  }
  void open(const ProfilerEvent& event) {
    require_room(open_count_, kMostOpen, "ranges that begin (\"ph\": \"B\") and have not ended",
                 "was the program that wrote it stopped? Record fewer steps");
    ++open_count_;
    ProfilerEvent& begun = open_[{event.process, event.thread}].emplace_back();
    begun.name = event.name.substr(0, kLongestName);
    begun.category = event.category.substr(0, kLongestName);
    begun.action = event.action.substr(0, kLongestName + 1);
    begun.start = event.start;
    begun.process = event.process, begun.thread = event.thread;
  }
  void add_work(BusyTimes& times, Interval time) {
    const std::size_t before = times.size();
    times.add(time);
    work_ += times.size() - before;
    require_room(work_, kMostWork, "operators and kernels", "record fewer steps");
  }

  void see(const ProfilerEvent& event, Interval time) {
    constexpr Nanoseconds kLongest{100'000'000'000'000'000};
    if (event.duration > kLongest)
      throw ConfigError({file_}, "'" + event.name + "' lasts for more than three years");
    if (event.duration < Nanoseconds{0})
      throw ConfigError({file_}, "'" + event.name + "' ends before it begins");
    if (!event.action.empty()) return see_ours(event, time);
    if (event.category == "kernel" || event.category.starts_with("gpu_mem")) {
      if (!is_communication(event.name)) add_work(kernels_[event.thread], time);
    } else if (event.category == "cpu_op") {
      if (!is_communication(event.name)) add_work(operators_, time);
    } else if (const auto cell = action_named(event.name)) {
      count_action();
      const bool device = event.category == "gpu_user_annotation";
      (device ? on_device_ : ranges_).push_back({*cell, time, event.thread});
    }
  }

  /// Differences of any two times must fit into 64 bits.
  void check_time(const ObservedAction& action) const {
    constexpr Nanoseconds kMost{4'000'000'000'000'000'000};
    if (action.start < -kMost || action.end > kMost)
      throw ConfigError({file_}, to_string(action.cell) + " has a time beyond the year 2096");
  }

  void count_action() {
    require_room(actions_, kMostActions, "actions", "record fewer steps");
    ++actions_;
  }

  void see_ours(const ProfilerEvent& event, Interval time) {
    count_action();
    if (event.action.size() > kLongestName)
      throw ConfigError({file_}, "has an action whose name is longer than " +
                                     std::to_string(kLongestName) + " characters");
    const ParsedCell parsed = parse_cell(event.action);
    if (!parsed.cell) throw ConfigError({file_}, parsed.error);
    ours_[event.process].push_back(
        {*parsed.cell, time.start, time.end, time.end - time.start, is_send(*parsed.cell)});
  }

  void close(const ProfilerEvent& event) {
    const auto open = open_.find({event.process, event.thread});
    if (open == open_.end()) return;  // the recording began in the middle of it
    ProfilerEvent begun = std::move(open->second.back());
    open->second.pop_back();
    --open_count_;
    if (open->second.empty()) open_.erase(open);
    begun.duration = *event.start - *begun.start;
    see(begun, {*begun.start, *event.start});
  }

  RankId checked(std::size_t rank) const {
    if (rank < kMostRanks) return RankId{rank};
    throw ConfigError({file_}, "is of rank " + std::to_string(rank) + ", there are no more than " +
                                   std::to_string(kMostRanks) + " ranks");
  }

  std::size_t rank_of(const ProfilerHead& head) const {
    if (head.rank && *head.rank >= 0) return static_cast<std::size_t>(*head.rank);
    const std::string name = std::filesystem::path(file_).filename().string();
    std::size_t at = name.find("rank");
    if (at == std::string::npos)
      throw ConfigError({file_},
                        "does not say which rank it is of (distributedInfo); put it into the "
                        "file's name, as in rank3.json");
    at += 4;
    if (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
    std::size_t rank = 0;
    if (std::from_chars(name.data() + at, name.data() + name.size(), rank).ec != std::errc{})
      throw ConfigError({file_}, "has no number behind \"rank\" in its name, as in rank3.json");
    return rank;
  }

  /// An action's time is that of its work. Without work it ends with its range: what it waits for
  /// comes before.
  void add_on_host(const Range& range, ObservedRank& rank) {
    const bool works = on_device_.empty() && !is_send(range.cell);
    const auto covered = works ? operators_.within(range.time) : std::nullopt;
    const Interval all = is_send(range.cell) || (operators_.empty() && on_device_.empty())
                             ? range.time
                             : Interval{range.time.end, range.time.end};
    const Interval span = covered ? covered->span : all;
    rank.actions.push_back(
        {range.cell, span.start, span.end, covered ? covered->busy : span.end - span.start});
  }
  /// A range is shown on every stream on which it has kernels; its work is where they compute.
  void add_on_device(const Range& range, ObservedRank& rank) {
    if (const auto covered = kernels_[range.stream].within(range.time))
      rank.actions.push_back({range.cell, covered->span.start, covered->span.end, covered->busy});
  }

  std::vector<ObservedRank> our_ranks(std::size_t clock) {
    std::vector<ObservedRank> ranks;
    for (auto& [process, actions] : ours_) {
      const std::string& name = processes_[process];
      if (!name.starts_with(kOurProcess)) continue;
      std::size_t rank = 0;
      std::from_chars(name.data() + kOurProcess.size(), name.data() + name.size(), rank);
      ranks.push_back({file_, clock, checked(rank), std::move(actions)});
    }
    if (ranks.empty()) throw ConfigError({file_}, "has no measured ranks, only what was predicted");
    return ranks;
  }

  std::string file_;
  std::map<std::int64_t, std::string> processes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<ProfilerEvent>> open_;
  std::map<std::int64_t, std::vector<ObservedAction>> ours_;
  std::vector<Range> ranges_, on_device_;
  BusyTimes operators_;
  std::map<std::int64_t, BusyTimes> kernels_;  // by stream
  std::size_t open_count_ = 0, actions_ = 0, work_ = 0;
};

}  // namespace

std::vector<ObservedRank> read_profile(const std::filesystem::path& file, std::size_t clock) {
  Profile profile(file);
  const ProfilerHead head =
      read_profiler_events(file, [&](const ProfilerEvent& event) { profile.see(event); });
  return profile.ranks(head, clock);
}

}  // namespace pfeife
