#include "runtime/execute/host_clocks.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "runtime/device/tensor_bytes.h"
#include "runtime/transport/socket.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kPingTask = ~std::uint32_t{0} - 100;
constexpr std::uint32_t kPongTask = kPingTask - 1;
constexpr std::uint32_t kFoundTask = kPingTask - 2;
constexpr std::uint32_t kPings = 64;
constexpr RankId kZero{0};

at::Tensor number(std::int64_t value) { return at::tensor({value}, at::kLong); }

Nanoseconds corrected(Nanoseconds time, const std::vector<HostClocks::Offset>& offsets) {
  if (time == kUnknownStart || time == kUnknownEnd) return time;
  const HostClocks::Offset &first = offsets.front(), &last = offsets.back();
  if (last.at <= first.at) return time + first.offset;
  const double share = seconds(time - first.at) / seconds(last.at - first.at);
  const auto drift = static_cast<double>((last.offset - first.offset).count());
  return time + first.offset + Nanoseconds{static_cast<std::int64_t>(share * drift)};
}

}  // namespace

HostClocks::HostClocks(std::string host, Clock clock)
    : host_(std::move(host)), clock_(std::move(clock)) {}
HostClocks::HostClocks() : HostClocks(host_identity()) {}

void HostClocks::measure(Transport& transport) {
  ++times_;
  offsets_.resize(transport.ranks());
  if (transport.rank() == kZero) {
    offsets_[0].push_back({});
    for (std::size_t r = 1; r < transport.ranks(); ++r) {
      answer(transport, RankId{r});
      const at::Tensor found = transport.receive(RankId{r}, {times_, kFoundTask, 0}).tensors.at(0);
      const auto* at = found.const_data_ptr<std::int64_t>();
      offsets_[r].push_back(
          {Nanoseconds{at[0]}, Nanoseconds{at[1]}, Nanoseconds{at[2]}, at[3] != 0});
    }
    return;
  }
  const Offset found = ask(transport);
  transport.send(kZero, {times_, kFoundTask, 0},
                 {at::tensor({found.at.count(), found.offset.count(), found.error.count(),
                              std::int64_t{found.other_host}},
                             at::kLong)});
}

/// Rank 0 has the time when it answers: after the question was sent, before the answer was there.
HostClocks::Offset HostClocks::ask(Transport& transport) const {
  transport.send(kZero, {times_, kPingTask, 0}, {tensor_of_text(host_)});
  Offset best{.at = clock_(), .error = Nanoseconds::max(), .other_host = true};
  if (transport.receive(kZero, {times_, kPongTask, 0}).tensors.at(0).item<std::int64_t>() == 0)
    return {.at = clock_()};
  for (std::uint32_t ping = 1; ping <= kPings; ++ping) {
    const Nanoseconds before = clock_();
    transport.send(kZero, {times_, kPingTask, ping}, {});
    const at::Tensor answer = transport.receive(kZero, {times_, kPongTask, ping}).tensors.at(0);
    const Nanoseconds after = clock_(), error = (after - before) / 2;
    if (error >= best.error) continue;
    best.at = before + error;
    best.offset = Nanoseconds{answer.item<std::int64_t>()} - best.at;
    best.error = error;
  }
  return best;
}

void HostClocks::answer(Transport& transport, RankId rank) const {
  const bool other_host =
      text_of(transport.receive(rank, {times_, kPingTask, 0}).tensors.at(0)) != host_;
  transport.send(rank, {times_, kPongTask, 0}, {number(other_host ? 1 : 0)});
  for (std::uint32_t ping = 1; other_host && ping <= kPings; ++ping) {
    transport.receive(rank, {times_, kPingTask, ping});
    transport.send(rank, {times_, kPongTask, ping}, {number(clock_().count())});
  }
}

/// A transfer starts by the clock of its sender and ends by that of its receiver, whoever says it.
void HostClocks::correct(const DependencyGraph& graph,
                         std::vector<std::vector<TaskRecord>>& records,
                         const std::vector<RankId>& numbers) const {
  const auto time = [&](std::size_t rank, Nanoseconds by_it) {
    const auto& offsets = offsets_.at(numbers.at(rank).index());
    return offsets.front().other_host ? corrected(by_it, offsets) : by_it;
  };
  for (std::size_t r = 0; r < records.size(); ++r)
    for (TaskRecord& record : records[r]) {
      const Task& task = graph.tasks[record.task.index()];
      const bool moves = task.kind == TaskKind::Transfer;
      record.start = time(moves ? task.rank.index() : r, record.start);
      record.end = time(moves ? task.peer.index() : r, record.end);
    }
}

/// Two ranks that are each off: both errors.
Nanoseconds HostClocks::error() const {
  std::vector<Nanoseconds> errors(2, Nanoseconds{0});
  for (const auto& of_rank : offsets_) {
    Nanoseconds most{0};
    for (const Offset& offset : of_rank) most = std::max(most, offset.error);
    errors.push_back(most);
  }
  std::ranges::sort(errors, std::greater<>());
  return errors[0] + errors[1];
}

std::string HostClocks::text() const {
  std::ostringstream out;
  for (std::size_t r = 0; r < offsets_.size(); ++r) {
    if (offsets_[r].empty() || !offsets_[r].front().other_host) continue;
    const Offset& last = offsets_[r].back();
    const Nanoseconds drift = last.offset - offsets_[r].front().offset;
    out << "clock of rank " << r << ": " << std::setprecision(9) << -seconds(last.offset)
        << " s ahead of rank 0's, known to within " << std::setprecision(3)
        << seconds(last.error) * 1e6 << " us, " << seconds(drift) * 1e6
        << " us more than before the run\n";
  }
  return out.str();
}

}  // namespace pfeife
