#include <algorithm>

#include "runtime/profile/cluster_text.h"
#include "runtime/profile/statistics.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMessageSizes[] = {
    std::int64_t{16} << 10, std::int64_t{64} << 10, std::int64_t{256} << 10, std::int64_t{1} << 20,
    std::int64_t{4} << 20,  std::int64_t{16} << 20, std::int64_t{64} << 20};
constexpr std::size_t kWarmUpMessages = 3;
constexpr std::int64_t kTraffic = std::int64_t{512} << 20;  // of a size each way

std::size_t repetitions(std::int64_t bytes) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(kTraffic / bytes, 8, 100));
}

class LinkMeter {
 public:
  explicit LinkMeter(Transport& transport)
      : transport_(transport), other_(transport.rank() == RankId{0} ? 1 : 0) {}

  /// Messages take turns: to the other rank, and back.
  Nanoseconds one_way(const at::Tensor& tensor, std::size_t count) {
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < count + kWarmUpMessages; ++i) {
      next();
      if (transport_.rank() == RankId{0}) transport_.send(other_, last_, {tensor});
      const Nanoseconds time = receive(last_);
      if (transport_.rank() == RankId{1}) transport_.send(other_, last_, {tensor});
      if (i >= kWarmUpMessages) times.push_back(time);
    }
    return median(std::move(times));
  }

  /// Both ranks send at once.
  Nanoseconds both(const at::Tensor& tensor, std::size_t count) {
    std::vector<Nanoseconds> times;
    const at::Tensor word = at::zeros({1});
    for (std::size_t i = 0; i < count + kWarmUpMessages; ++i) {
      transport_.send(other_, next(), {word});  // so that both begin together
      receive(last_);
      transport_.send(other_, next(), {tensor});
      const Nanoseconds time = receive(last_);
      if (i >= kWarmUpMessages) times.push_back(time);
    }
    return median(std::move(times));
  }

 private:
  const Tag& next() { return last_ = {++step_, 0, 0}; }
  Nanoseconds receive(const Tag& tag) {
    const Message message = transport_.receive(other_, tag);
    return message.arrived - message.posted;
  }

  Transport& transport_;
  RankId other_;
  std::uint64_t step_ = 0;
  Tag last_;
};

}  // namespace

BytesPerSecond rate(const LinkPoint& point, Nanoseconds time, Nanoseconds latency) {
  const Nanoseconds moving = std::max(time - latency, Nanoseconds{1});
  return {static_cast<double>(point.bytes.value) / seconds(moving)};
}

bool LinkMeasurement::half_duplex() const {
  double together = 0, alone = 0;
  for (const LinkPoint& point : points) {
    together += static_cast<double>(point.both.count());
    alone += static_cast<double>(point.one_way.count());
  }
  return together > 4.0 / 3.0 * alone;  // 2 / (together / alone) < 1.5
}

LinkMeasurement measure_link(Transport& transport,
                             const std::function<void(const std::string&)>& progress) {
  LinkMeasurement measured;
  if (transport.rank() > RankId{1}) return measured;
  LinkMeter meter(transport);
  measured.latency = meter.one_way(at::zeros({1}), 300);
  for (const std::int64_t size : kMessageSizes) {
    const Bytes bytes{size};
    if (progress) progress("link: messages of " + to_string(bytes));
    const at::Tensor tensor = at::zeros({size / 4});
    const std::size_t count = repetitions(size);
    const Nanoseconds alone = meter.one_way(tensor, count);
    measured.points.push_back({bytes, alone, meter.both(tensor, count), count});
  }
  return transport.rank() == RankId{0} ? measured : LinkMeasurement{};
}

}  // namespace pfeife
