#include <cstring>
#include <type_traits>

#include "planner/ir/basics/error.h"
#include "sim/engine.h"

namespace pfeife {
namespace {

// In front of all; to be changed with what follows. The layout of the plain values guards itself.
constexpr std::uint64_t kFormat = 0x7066656966651001 + (sizeof(WorkItem) << 16);

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(std::uint64_t{values.size()});
    if (!values.empty())
      bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  void get(T& value) {
    std::memcpy(static_cast<void*>(&value), take(1, sizeof value), sizeof value);
  }
  template <class T>
  void get(std::vector<T>& values) {
    const std::size_t count = size();
    const char* const from = take(count, sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(static_cast<void*>(values.data()), from, count * sizeof(T));
  }
  std::size_t size() {
    std::uint64_t count = 0;
    get(count);
    return count;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  const char* take(std::size_t count, std::size_t size) {
    if (count > bytes_.size() / size) throw RuntimeFault("the request is cut short");
    const char* const from = bytes_.data();
    bytes_.remove_prefix(count * size);
    return from;
  }
  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(const EngineWork& work) {
  Writer out;
  out.put(kFormat);
  const Workload& load = work.workload;
  out.put(std::uint64_t{load.ranks});
  out.put(load.items);
  out.put(load.links);
  out.put(load.waits);
  out.put(load.next_begin);
  out.put(load.next);
  out.put(std::uint64_t{load.routes.size()});
  for (const FlowRoute& route : load.routes) {
    out.put(route.from);
    out.put(route.to);
    out.put(std::uint8_t{route.ring.has_value()});
    out.put(route.ring.value_or(StageId{}));
    out.put(route.links);
    out.put(route.capacity);
  }
  out.put(work.jitter.cv);
  out.put(work.jitter.seed);
  out.put(work.jitter.drift);
  out.put(work.first);
  out.put(work.last);
  out.put(std::uint8_t{work.whole.has_value()});
  out.put(work.whole.value_or(0));
  return out.take();
}

EngineWork engine_work(std::string_view bytes) {
  Reader in(bytes);
  std::uint64_t format = 0;
  in.get(format);
  if (format != kFormat)
    throw RuntimeFault("the simulation server is another version's than the program that asks it");
  EngineWork work;
  Workload& load = work.workload;
  load.ranks = in.size();
  in.get(load.items);
  in.get(load.links);
  in.get(load.waits);
  in.get(load.next_begin);
  in.get(load.next);
  std::uint8_t given = 0;
  for (std::size_t i = 0, count = in.size(); i < count; ++i) {
    FlowRoute& route = load.routes.emplace_back();
    StageId ring;
    in.get(route.from);
    in.get(route.to);
    in.get(given);
    in.get(ring);
    if (given != 0) route.ring = ring;
    in.get(route.links);
    in.get(route.capacity);
  }
  in.get(work.jitter.cv);
  in.get(work.jitter.seed);
  in.get(work.jitter.drift);
  in.get(work.first);
  in.get(work.last);
  std::uint64_t whole = 0;
  in.get(given);
  in.get(whole);
  if (given != 0) work.whole = whole;
  if (!in.at_end()) throw RuntimeFault("the request is longer than what it says");
  return work;
}

}  // namespace pfeife
