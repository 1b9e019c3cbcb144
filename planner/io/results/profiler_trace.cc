#include "planner/io/results/profiler_trace.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace pfeife {
namespace {

constexpr Nanoseconds kBetweenSteps{1'000'000};
enum Thread { kCompute = 1, kTransfers = 2 };

/// A time of at least 0, in microseconds with three decimals.
struct Microseconds {
  Nanoseconds time;
};
std::ostream& operator<<(std::ostream& out, Microseconds us) {
  return out << us.time.count() / 1000 << "." << std::setw(3) << std::setfill('0')
             << us.time.count() % 1000;
}

class RankTrace {
 public:
  RankTrace(RankId rank, std::size_t ranks) : rank_(rank) {
    out_ << "{\"schemaVersion\": 1, \"deviceProperties\": [], \"distributedInfo\": {\"backend\": "
            "\"pfeife\", \"rank\": "
         << rank.value << ", \"world_size\": " << ranks
         << "}, \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 0, \"traceEvents\": [\n"
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": "
         << process() << ", \"tid\": 0, \"ts\": 0, \"args\": {\"name\": \"measured: rank "
         << rank.value << "\"}}";
  }

  void add(const Event& event, Nanoseconds origin) {
    if (event.rank != rank_) return;
    const std::string cell = to_string(event.cell);
    const bool optimizer = event.kind == TaskKind::Optimizer;
    const bool works = event.kind == TaskKind::Compute || optimizer;
    const Thread thread = works ? kCompute : kTransfers;
    const Nanoseconds start = event.start + origin, length = event.end - event.start;
    range(optimizer ? "Optimizer.step#" + cell : cell, "user_annotation", thread, start, length,
          "\"action\": \"" + cell + "\"");
    if (works) range("pfeife::" + cell, "cpu_op", thread, start, length);
  }
  void add_step(std::size_t number, Nanoseconds start, Nanoseconds length) {
    range("ProfilerStep#" + std::to_string(number), "user_annotation", kCompute, start, length);
  }
  std::string text() const { return out_.str() + "\n]}\n"; }

 private:
  std::int64_t process() const { return std::int64_t{rank_.value} + 1; }
  void range(const std::string& name, const char* category, Thread thread, Nanoseconds start,
             Nanoseconds length, const std::string& arguments = "") {
    out_ << ",\n{\"ph\": \"X\", \"cat\": \"" << category << "\", \"name\": \"" << name
         << "\", \"pid\": " << process() << ", \"tid\": " << static_cast<int>(thread)
         << ", \"ts\": " << Microseconds{start} << ", \"dur\": " << Microseconds{length}
         << ", \"args\": {" << arguments << "}}";
  }

  RankId rank_;
  std::ostringstream out_;
};

}  // namespace

std::string profiler_trace(std::span<const Trace> steps, RankId rank) {
  RankTrace out(rank, steps.empty() ? 0 : steps.front().ranks);
  Nanoseconds next{0};
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].events.empty()) continue;
    Nanoseconds begin = Nanoseconds::max(), end = Nanoseconds::min();
    for (const Event& event : steps[k].events)
      begin = std::min(begin, event.start), end = std::max(end, event.end);
    const Nanoseconds origin = next - begin;
    out.add_step(k, next, end - begin);
    for (const Event& event : steps[k].events) out.add(event, origin);
    next += end - begin + kBetweenSteps;
  }
  return out.text();
}

}  // namespace pfeife
