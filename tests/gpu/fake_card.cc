#include "tests/gpu/fake_card.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Flags.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "tests/gpu/fake_nccl/stream_work.h"
#include "tests/gpu/stream_races.h"

C10_DECLARE_int(caffe2_log_level);

namespace pfeife::testing {
namespace {

constexpr auto kCard = c10::DeviceType::PrivateUse1;
at::Device card() { return {kCard, 0}; }

std::mutex log_mutex;
CardLog card_log;
thread_local c10::StreamId current_stream = 0;
thread_local Nanoseconds waited{0};  // of thread_time()
Nanoseconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}
/// New ones are numbered from 1 and come round, as LibTorch's do: so neither clocks nor threads of
/// streams grow with the runs of a process.
constexpr c10::StreamId kStreams = 255;
std::atomic<c10::StreamId> streams{0};
std::atomic<int> threads_on[kStreams + 1];  // these streams are passed over
std::atomic<std::int64_t> events{0};
std::atomic<bool> events_count{false};

/// Work that a stream was given by the stand-in for NCCL, and how much of it is done. What LibTorch
/// gives is done at once.
struct StreamWork {
  std::atomic<std::uint64_t> given{0}, done{0};
};
StreamWork stream_work[kStreams + 1];
StreamWork& work_of(c10::StreamId stream) { return stream_work[stream]; }

StreamRaces& races = *new StreamRaces;  // tensors may be freed while the program ends
thread_local bool in_fallback = false;

std::mutex mutation_mutex;  // of what follows
Mutation mutation;
Mutated mutated;
int waits_seen = 0, events_asked = 0;
auto& last_work = *new std::map<c10::StreamId, std::string>;  // of the stand-in for NCCL

/// The host is told that an event is done when it has asked so often: it is always late.
constexpr int kAsked = 4;

struct FakeEvent {
  c10::StreamId stream = 0;
  std::int64_t number = 0;
  std::uint64_t given = 0;  ///< to the stream before it
  std::chrono::steady_clock::time_point time;
  StreamClock clock = {};
  std::string after = {};
  int asked = 0;

  bool is_done() const { return work_of(stream).done >= given; }
  /// Also: is it said to be done although it is not known to be?
  bool lies() {
    if (asked++ > 0) return false;
    const std::lock_guard lock(mutation_mutex);
    if (++events_asked != mutation.done) return false;
    mutated = {true, !races.would_learn(current_stream, clock), after};
    return true;
  }
  void wait() const {
    const Nanoseconds begin = thread_time();
    while (!is_done()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    waited += thread_time() - begin;
  }
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  at::DeviceType type() const override { return kCard; }
  at::Device exchangeDevice(at::Device) const override { return card(); }
  at::Device getDevice() const override { return card(); }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  c10::Stream getStream(at::Device) const override { return stream(current_stream); }
  c10::Stream getDefaultStream(at::Device) const override { return stream(0); }
  c10::Stream getNewStream(at::Device, int) const override {
    c10::StreamId next;
    do next = 1 + streams++ % kStreams;
    while (threads_on[next] > 0);
    return stream(next);
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    ++threads_on[next.id()], --threads_on[current_stream];
    return stream(std::exchange(current_stream, next.id()));
  }
  at::DeviceIndex deviceCount() const noexcept override { return 1; }

  void record(void** event, const c10::Stream& on, at::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new FakeEvent;
    std::unique_lock lock(mutation_mutex);
    const std::string after = std::exchange(last_work[on.id()], "");
    lock.unlock();
    *static_cast<FakeEvent*>(*event) = {on.id(),
                                        events++,
                                        work_of(on.id()).given,
                                        std::chrono::steady_clock::now(),
                                        races.record(on.id()),
                                        after};
  }
  void* getStreamNativeHandle(const c10::Stream on) const override { return &work_of(on.id()); }
  /// The stream's next work is done at once: so the host waits, where a card's would not.
  void block(void* event, const c10::Stream& waiting) const override {
    const auto* until = static_cast<FakeEvent*>(event);
    if (is_left_out(*until, waiting.id())) return;
    races.wait(waiting.id(), until->clock);
    if (until->stream != waiting.id()) until->wait();
    const std::lock_guard lock(log_mutex);
    card_log.waits.emplace_back(waiting.id(), until->stream);
  }
  bool queryEvent(void* event) const override {
    auto* asked = static_cast<FakeEvent*>(event);
    if (current_stream == 0) return asked->is_done();  // a thread that only looks on
    if (asked->lies()) return true;
    if (!asked->is_done()) return false;
    if (asked->asked < kAsked && !races.host_knows(asked->clock)) return false;
    races.host_saw(asked->clock);
    return true;
  }
  void destroyEvent(void* event, at::DeviceIndex) const noexcept override {
    delete static_cast<FakeEvent*>(event);
  }
  void synchronizeEvent(void* event) const override {
    static_cast<FakeEvent*>(event)->wait();
    races.host_waited(static_cast<FakeEvent*>(event)->clock);
  }
  void synchronizeStream(const c10::Stream& on) const override {
    FakeEvent{on.id(), 0, work_of(on.id()).given, {}}.wait();
    races.host_waited(races.record(on.id()));
    const std::lock_guard lock(log_mutex);
    card_log.finished.push_back(on.id());
  }
  void synchronizeDevice(at::DeviceIndex) const override {
    for (c10::StreamId s = 0; s <= std::min(streams.load(), kStreams); ++s)
      synchronizeStream(stream(s));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& on) const override {
    races.borrowed(data.get(), on.id());
    const std::lock_guard lock(log_mutex);
    card_log.borrowed.push_back(on.id());
  }
  double elapsedTime(void* from, void* to, at::DeviceIndex) const override {
    const auto *begin = static_cast<FakeEvent*>(from), *end = static_cast<FakeEvent*>(to);
    if (!events_count)
      return std::chrono::duration<double, std::milli>(end->time - begin->time).count();
    const auto between = end->number - begin->number;
    return milliseconds(kBetweenEvents) * static_cast<double>(between);
  }

 private:
  static bool is_left_out(const FakeEvent& until, c10::StreamId waiting) {
    const std::lock_guard lock(mutation_mutex);
    if (++waits_seen != mutation.wait) return false;
    // Whether it would have added anything: asked of the clocks without changing them.
    mutated = {true, !races.would_learn(waiting, until.clock), until.after};
    return true;
  }
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, card(), id);
  }
};

struct Block {
  std::size_t size, requested;
};
std::mutex block_mutex;
std::map<void*, Block> blocks;
c10::CachingAllocator::Stat allocated, requested;

/// Gives and takes blocks of whole 64 bytes, and says so as LibTorch's caching allocators do.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, card()};
    const std::size_t rounded = (size + 63) / 64 * 64;
    void* block = std::aligned_alloc(64, rounded);
    {
      const std::lock_guard lock(block_mutex);
      blocks[block] = {rounded, size};
      allocated.increase(rounded);
      requested.increase(size);
    }
    std::memset(block, 0xff, rounded);  // NaN
    races.allocated(block, rounded, current_stream);
    report(block, static_cast<std::int64_t>(rounded));
    return {block, block, &release, card()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(at::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats statistics;
    const std::lock_guard lock(block_mutex);
    statistics.allocated_bytes[0] = statistics.reserved_bytes[0] = allocated;
    statistics.requested_bytes[0] = requested;
    return statistics;
  }
  void resetAccumulatedStats(at::DeviceIndex) override {}
  void resetPeakStats(at::DeviceIndex) override {
    const std::lock_guard lock(block_mutex);
    allocated.reset_peak();
    requested.reset_peak();
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(at::DeviceIndex) override {
    constexpr std::size_t kAll = std::size_t{1} << 30;
    const std::lock_guard lock(block_mutex);
    return {kAll - static_cast<std::size_t>(allocated.current), kAll};
  }

 private:
  /// Free memory stays NaN for who still reads it, until 32 MiB more are free.
  static void keep_for_a_while(void* block, std::int64_t bytes) {
    constexpr std::int64_t kKept = std::int64_t{32} << 20;
    static auto& kept = *new std::deque<std::pair<void*, std::int64_t>>;
    static std::int64_t kept_bytes = 0;
    const std::lock_guard lock(block_mutex);
    kept.emplace_back(block, bytes);
    for (kept_bytes += bytes; kept_bytes > kKept; kept.pop_front()) {
      kept_bytes -= kept.front().second;
      std::free(kept.front().first);
    }
  }
  static void report(void* block, std::int64_t bytes) {
    if (c10::memoryProfilingEnabled()) c10::reportMemoryUsageToProfiler(block, bytes, 0, 0, card());
  }
  static void release(void* block) {
    if (block == nullptr) return;
    std::int64_t bytes = 0;
    {
      const std::lock_guard lock(block_mutex);
      const Block gone = blocks.extract(block).mapped();
      bytes = static_cast<std::int64_t>(gone.size);
      allocated.decrease(gone.size);
      requested.decrease(gone.requested);
    }
    report(block, -bytes);
    races.freed(block);
    std::memset(block, 0xff, static_cast<std::size_t>(bytes));
    keep_for_a_while(block, bytes);
  }
};
Allocator allocator;

/// Memory of the host that counts as page-locked: it is known by its address.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* block = std::aligned_alloc(64, (size + 63) / 64 * 64);
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<char*>(block)] = size;
    return {block, block, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool holds(const void* data) {
    const auto* at = static_cast<const char*>(data);
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(const_cast<char*>(at));
    return after != blocks_.begin() &&
           at < std::prev(after)->first + std::max<std::size_t>(1, std::prev(after)->second);
  }

 private:
  static void release(void* block);
  std::mutex mutex_;
  std::map<char*, std::size_t> blocks_;
};
PinnedAllocator pinned;

void PinnedAllocator::release(void* block) {
  const std::lock_guard lock(pinned.mutex_);
  pinned.blocks_.erase(static_cast<char*>(block));
  std::free(block);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isPinnedPtr(const void* data) const override { return pinned.holds(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(at::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();  // whose kernels draw
  }
};

at::Tensor as_cpu(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu()) return tensor;
  const at::Tensor same = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                                        tensor.options().device(at::kCPU));
  same._set_conj(tensor.is_conj());
  same._set_neg(tensor.is_neg());
  return same;
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type), format);
}
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           at::dtype_or_default(type));
}
void accessed(const std::string& by, const std::vector<StreamRaces::Access>& what) {
  if (!in_fallback) races.accessed(current_stream, by, what);
}
void host_waits() {
  if (!in_fallback) races.host_waited(races.record(current_stream));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  {
    const std::lock_guard lock(log_mutex);
    ++card_log.copies;
    if (from.device().is_cpu() && from.numel() > 0 && !pinned.holds(from.data_ptr()))
      ++card_log.awaited_copies;
  }
  std::vector<StreamRaces::Access> accesses;
  if (!from.device().is_cpu()) accesses.push_back({from.data_ptr(), false});
  if (!to.device().is_cpu()) accesses.push_back({to.data_ptr(), true});
  accessed("a copy", accesses);
  as_cpu(to).copy_(as_cpu(from));
  if (to.device().is_cpu() && !non_blocking) host_waits();
  return to;
}
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {  // a result whose size the caller left open
    auto* result = to.unsafeGetTensorImpl();
    result->set_storage_keep_dtype(at::empty(from.sizes(), to.options()).storage());
    result->set_sizes_contiguous(from.sizes());
  }
  return copy_from(from, to, false);
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& b,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                       bool transposed, at::IntArrayRef output_padding, std::int64_t groups) {
  accessed("convolution", {{x.data_ptr(), false}, {w.data_ptr(), false}});
  return at::convolution(as_cpu(x), as_cpu(w), b ? std::optional(as_cpu(*b)) : b, stride, padding,
                         dilation, transposed, output_padding, groups)
      .to(card());
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& g, const at::Tensor& x, const at::Tensor& w, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> wanted) {
  const std::int64_t outputs = transposed ? w.size(1) * groups : w.size(0);
  accessed("convolution_backward",
           {{g.data_ptr(), false}, {x.data_ptr(), false}, {w.data_ptr(), false}});
  auto [gx, gw, gb] = at::convolution_backward(
      as_cpu(g), as_cpu(x), as_cpu(w), at::OptionalIntArrayRef({outputs}), stride, padding,
      dilation, transposed, output_padding, groups, wanted);
  const auto on_card = [](const at::Tensor& t) { return t.defined() ? t.to(card()) : t; };
  return {on_card(gx), on_card(gw), on_card(gb)};
}

void refuse_tensors_of_the_cpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto refuse = [&](const at::Tensor& t) {
    TORCH_CHECK(!t.defined() || t.dim() == 0 || !t.device().is_cpu(), op.schema().name(),
                " got a tensor of the CPU beside one of the card");
  };
  for (auto at = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
       at != stack.end(); ++at) {
    if (at->isTensor()) refuse(at->toTensor());
    if (at->isTensorList())
      for (const at::Tensor& t : at->toTensorVector()) refuse(t);
  }
}

void add_accesses(std::vector<StreamRaces::Access>& to, const c10::IValue& value, bool writes) {
  const auto add = [&](const at::Tensor& t) {
    if (t.defined() && !t.device().is_cpu() && t.has_storage() && t.numel() > 0)
      to.push_back({t.const_data_ptr(), writes});
  };
  if (value.isTensor()) add(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& t : value.toTensorVector()) add(t);
  if (value.isList() && !value.isTensorList())
    for (const c10::IValue& one : value.toListRef())
      if (one.isTensor()) add(one.toTensor());
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  {
    const std::lock_guard lock(log_mutex);
    const bool reads = op.schema().name() == "aten::_local_scalar_dense";
    ++(reads ? card_log.reads : card_log.kernels);
  }
  refuse_tensors_of_the_cpu(op, *stack);
  std::vector<StreamRaces::Access> accesses;
  const auto& arguments = op.schema().arguments();
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(arguments.size());
  for (std::size_t a = 0; a < arguments.size(); ++a)
    add_accesses(accesses, begin[static_cast<std::ptrdiff_t>(a)],
                 arguments[a].alias_info() && arguments[a].alias_info()->isWrite());
  {
    const bool before = std::exchange(in_fallback, true);
    try {
      at::native::cpu_fallback(op, stack);
    } catch (...) {
      in_fallback = before;
      throw;
    }
    in_fallback = before;
  }
  const auto& returns = op.schema().returns();
  const auto made = stack->end() - static_cast<std::ptrdiff_t>(returns.size());
  bool host_gets_it = false;
  for (std::size_t r = 0; r < returns.size(); ++r) {
    const c10::IValue& value = made[static_cast<std::ptrdiff_t>(r)];
    host_gets_it = host_gets_it || (!value.isTensor() && !value.isTensorList());
    if (!returns[r].alias_info()) add_accesses(accesses, value, true);
  }
  accessed(op.schema().name(), accesses);
  if (host_gets_it) host_waits();
}

}  // namespace

extern "C" void pfeife_stand_in_uses(void* stream, const char* what, const void* data,
                                     bool writes) {
  const auto number = static_cast<c10::StreamId>(static_cast<StreamWork*>(stream) - stream_work);
  races.accessed(number, what, {{data, writes}});
  const std::lock_guard lock(mutation_mutex);
  last_work[number] = what;
}
extern "C" void pfeife_stand_in_given(void* stream) { ++static_cast<StreamWork*>(stream)->given; }
extern "C" void pfeife_stand_in_done(void* stream) { ++static_cast<StreamWork*>(stream)->done; }

at::Device fake_card() {
  static const bool known = [] {
    FLAGS_caffe2_log_level = 2;  // the fallback to the CPU warns of results that it resizes
    c10::impl::registerDeviceGuard(kCard, new Guard);  // LibTorch keeps it for ever
    c10::register_privateuse1_backend("stand_in");
    c10::SetAllocator(kCard, &allocator);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
  }();
  (void)known;
  return card();
}

void count_event_times(bool counted) { events_count = counted; }

bool fake_card_is_there() { return c10::impl::hasDeviceGuardImpl(kCard); }

Nanoseconds host_time_here() { return thread_time() - waited; }

std::vector<std::string> take_races() { return races.take_reports(); }

Mutated mutate(Mutation next) {
  const std::lock_guard lock(mutation_mutex);
  mutation = next;
  waits_seen = events_asked = 0;
  return std::exchange(mutated, {});
}

CardLog take_card_log() {
  const std::lock_guard lock(log_mutex);
  return std::exchange(card_log, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("view", &at::native::view);
  m.impl("view.dtype", &at::native::view_dtype);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

// Autocast by LibTorch's own lists for accelerators.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define PFEIFE_NARROW(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(PFEIFE_NARROW)
#undef PFEIFE_NARROW
#define PFEIFE_WIDE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(PFEIFE_WIDE)
#undef PFEIFE_WIDE
}

}  // namespace pfeife::testing
