// What the stand-in takes for granted of a card, asked of the card: sizes of blocks, workspaces,
// order of events and streams, the pool of streams, copies.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <set>

#include "runtime/device/rank_memory.h"
#include "runtime/launch/rank_threads.h"
#include "runtime/transport/device_clock.h"
#include "runtime/transport/in_process_transport.h"
#include "tests/gpu/card/probe.h"

namespace pfeife::card {
namespace {

using nlohmann::json;

constexpr std::int64_t kMi = 1 << 20;

at::Tensor bytes_on(at::Device device, std::int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kByte).device(device));
}

void empty_cache(at::Device device) {
  finish(device);
  c10::getDeviceAllocator(device.type())->emptyCache();
}

/// The block that CUDA's allocator gives of `available` bytes, by its rule of splitting.
std::int64_t expected_block(std::int64_t asked, std::int64_t available) {
  const std::int64_t rounded = std::max<std::int64_t>((asked + 511) / 512 * 512, 512);
  const std::int64_t left = available - rounded;
  return (rounded <= kMi ? left >= 512 : left > kMi) ? rounded : available;
}

/// What it takes from the driver for a request: 2 MiB, 20 MiB or whole 2 MiB.
std::int64_t expected_segment(std::int64_t asked) {
  const std::int64_t rounded = std::max<std::int64_t>((asked + 511) / 512 * 512, 512);
  if (rounded <= kMi) return 2 * kMi;
  if (rounded < 10 * kMi) return 20 * kMi;
  return (rounded + 2 * kMi - 1) / (2 * kMi) * (2 * kMi);
}

json blocks(at::Device device) {
  json rows = json::array();
  for (const std::int64_t asked :
       {std::int64_t{1}, std::int64_t{512}, std::int64_t{513}, std::int64_t{100000}, kMi - 600,
        kMi - 100, kMi, kMi + 1, 2 * kMi, 9 * kMi, 10 * kMi, 11 * kMi - 5, 19 * kMi + 7,
        64 * kMi}) {
    empty_cache(device);
    RankMemory memory(device);
    const auto before = *allocator_statistics(device);
    const at::Tensor tensor = bytes_on(device, asked);
    const auto after = *allocator_statistics(device);
    const std::int64_t segment = expected_segment(asked);
    rows.push_back({{"asked", asked},
                    {"reported", memory.allocated().now.value},
                    {"allocated", (after.allocated.now - before.allocated.now).value},
                    {"requested", (after.requested.now - before.requested.now).value},
                    {"reserved", (after.reserved.now - before.reserved.now).value},
                    {"expected", expected_block(asked, segment)},
                    {"expected_reserved", segment}});
  }
  return rows;
}

/// A request that a larger free block meets: whole, or split?
json reuse(at::Device device) {
  json rows = json::array();
  for (const auto& [free, asked] : {std::pair{64 * kMi, 64 * kMi - kMi / 2},
                                    {64 * kMi, 63 * kMi},
                                    {64 * kMi, 63 * kMi - 512},
                                    {24 * kMi, 12 * kMi}}) {
    empty_cache(device);
    bytes_on(device, free);
    RankMemory memory(device);
    const at::Tensor tensor = bytes_on(device, asked);
    rows.push_back({{"free", free},
                    {"asked", asked},
                    {"reported", memory.allocated().now.value},
                    {"expected", expected_block(asked, free)}});
  }
  return rows;
}

/// What stays allocated after the first call of an operator on a new thread and stream, its result
/// let go: workspaces. And what more it took meanwhile.
json workspace(const Probe& probe, const std::function<at::Tensor()>& call) {
  json rows = json::array();
  for (int time = 0; time < 2; ++time)
    run_ranks(1, probe.device, [&](RankId, Transport&) {
      json row;
      for (const char* which : {"first", "second"}) {
        RankMemory memory(probe.device);
        at::Tensor result = call();
        finish(probe.device);
        const std::int64_t result_bytes = static_cast<std::int64_t>(result.storage().nbytes());
        result.reset();
        row[which] = {{"kept", memory.allocated().now.value},
                      {"most_beside_result", memory.allocated().peak.value - result_bytes}};
      }
      rows.push_back(row);
    });
  return rows;
}

json workspaces(const Probe& probe) {
  const std::int64_t n = probe.stand_in ? 64 : 2048;
  json answer;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto options = at::TensorOptions().device(probe.device).dtype(type);
    const at::Tensor a = at::ones({n, n}, options), b = at::ones({n}, options);
    const std::string of = std::string(" ") + c10::toString(type);
    answer["matrix product" + of] = workspace(probe, [&] { return at::mm(a, a); });
    answer["linear with bias" + of] = workspace(probe, [&] { return at::linear(a, a, b); });
  }
  const auto options = at::TensorOptions().device(probe.device);
  const at::Tensor image = at::ones({8, 3, 224, 224}, options),
                   w = at::ones({64, 3, 16, 16}, options);
  if (!probe.stand_in)
    answer["convolution Float"] = workspace(probe, [&] {
      return at::conv2d(image, w, {}, {16, 16});
    });
  return answer;
}

/// Work that takes the device some milliseconds.
void delay(const at::Tensor& matrix, int products) {
  at::Tensor x = matrix;
  for (int i = 0; i < products; ++i) x = at::mm(matrix, x);
}

json order(const Probe& probe) {
  const at::Device device = probe.device;
  const at::Tensor matrix =
      at::rand({probe.stand_in ? 32 : 4096, probe.stand_in ? 32 : 4096}, at::kCPU).to(device);
  const int products = 20, tries = 10;
  int wrong_with_event = 0, stale_without = 0;
  double host_ms = 0, device_ms = 0, empty_us = 0, across_ms = 0;
  DeviceThread first(device);
  delay(matrix, products);
  finish(device);
  DeviceClock clock(device);
  for (int i = 0; i < tries; ++i) {
    for (const bool with_event : {true, false}) {
      at::Tensor x = at::zeros({1 << 20}, device);
      finish(device);
      const Nanoseconds begin = now();
      const Nanoseconds from = clock.mark(), again = clock.mark();
      delay(matrix, products);
      x.fill_(1);
      const Nanoseconds to = clock.mark();
      host_ms += milliseconds(now() - begin) / (2 * tries);
      at::Tensor seen;
      Nanoseconds there{0};
      std::optional<StreamHandover> handover;
      if (with_event) handover.emplace(Tensors{x});
      {
        c10::impl::VirtualGuardImpl guard(device.type());
        const c10::StreamGuard other(guard.getNewStream(device));
        seen = with_event ? handover->receive({x}).at(0) : x.clone();
        there = clock.mark();
        finish(device);
      }
      finish(device);
      clock.read();
      device_ms += milliseconds(clock.time(to) - clock.time(from)) / (2 * tries);
      empty_us += 1e3 * milliseconds(clock.time(again) - clock.time(from)) / (2 * tries);
      if (with_event) across_ms += milliseconds(clock.time(there) - clock.time(to)) / tries;
      const bool right = at::equal(seen.cpu(), at::ones({1 << 20}));
      (with_event ? wrong_with_event : stale_without) += !right;
    }
  }
  return {{"tries", tries},
          {"wrong_with_event", wrong_with_event},
          {"stale_without_event", stale_without},
          {"host_ms", host_ms},
          {"device_ms", device_ms},
          {"two_events_us", empty_us},
          {"copy_on_other_stream_ms", across_ms}};
}

json stream_pool(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  std::set<c10::StreamId> seen;
  int taken = 0;
  while (taken < 200 && seen.insert(guard.getNewStream(device).id()).second) ++taken;
  return {{"streams_before_one_comes_again", taken}, {"asked", 200}};
}

json copies(const Probe& probe) {
  const std::int64_t bytes = (probe.stand_in ? 1 : 256) * kMi;
  const at::Tensor pageable = at::ones({bytes}, at::kByte);
  const at::Tensor pinned = pageable.pin_memory();
  json answer;
  const auto time = [&](const char* name, const std::function<at::Tensor()>& copy) {
    copy();
    finish(probe.device);
    const Nanoseconds begin = now();
    const at::Tensor there = copy();
    const Nanoseconds given = now();
    finish(probe.device);
    const Nanoseconds end = now();
    answer[name] = {{"host_ms", milliseconds(given - begin)},
                    {"gb_per_s", static_cast<double>(bytes) / 1e9 / seconds(end - begin)}};
  };
  time("pageable", [&] { return pageable.to(probe.device); });
  time("pinned", [&] { return pinned.to(probe.device, /*non_blocking=*/true); });
  time("pinned on the way", [&] { return copied_ahead(pageable, probe.device, at::kByte); });
  return answer;
}

}  // namespace

void probe_assumptions(const Probe& probe) {
  json answer;
  const std::pair<const char*, std::function<json()>> parts[] = {
      {"blocks", [&] { return blocks(probe.device); }},
      {"reuse", [&] { return reuse(probe.device); }},
      {"stream_pool", [&] { return stream_pool(probe.device); }},
      {"order", [&] { return order(probe); }},
      {"copies", [&] { return copies(probe); }},
      {"workspaces", [&] { return workspaces(probe); }},
  };
  for (const auto& [name, ask] : parts) {
    try {
      answer[name] = ask();
    } catch (const std::exception& error) {  // the others are worth having
      answer["errors"][name] = error.what();
    }
    probe.write(answer);
  }
}

}  // namespace pfeife::card
