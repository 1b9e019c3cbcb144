#include "runtime/transport/nccl_transport.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "planner/ir/basics/error.h"
#include "runtime/device/tensor_bytes.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kIdTask = ~std::uint32_t{0} - 60;
constexpr std::uint32_t kFormTask = kIdTask - 1;
constexpr std::uint32_t kWarmUpTask = kIdTask - 2;
constexpr RankId kZero{0};
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kPoll = std::chrono::microseconds(20);

int sum_type(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return nccl::kFloat16;
    case at::kBFloat16:
      return nccl::kBfloat16;
    case at::kFloat:
      return nccl::kFloat32;
    case at::kDouble:
      return nccl::kFloat64;
    default:
      throw RuntimeFault(stream_all("NCCL adds up no tensors of type ", type));
  }
}

}  // namespace

NcclTransport::NcclTransport(SocketTransport& control, const NcclLibrary& nccl, at::Device device,
                             NcclOptions options)
    : control_(control), nccl_(nccl), device_(device), options_(options), stream_(new_stream()) {
  control_.place_on(device);
  // NCCL then starts what several communicators were asked for in the order of the host's calls.
  if (options_.queue_a_pair) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  watchdog_ = std::thread([this] { watch(); });
  try {
    const nccl::UniqueId id = share_id();
    nccl::Config config;
    call("ncclCommInitRankConfig", nullptr, [&] {
      return nccl_.CommInitRankConfig(&world_, static_cast<int>(ranks()), id,
                                      static_cast<int>(rank().value), &config);
    });
  } catch (...) {
    abort();
    watchdog_.join();
    throw;
  }
}

NcclTransport::~NcclTransport() {
  if (watchdog_.joinable()) {
    abort();
    watchdog_.join();
  }
}

std::chrono::milliseconds hang_deadline(Nanoseconds estimated_step) {
  const auto steps = std::chrono::duration_cast<std::chrono::milliseconds>(20 * estimated_step);
  return std::max<std::chrono::milliseconds>(steps, std::chrono::minutes(2));
}

/// NCCL's name for the run, from rank 0.
nccl::UniqueId NcclTransport::share_id() {
  nccl::UniqueId id{};
  const Tag tag{0, kIdTask, 0};
  if (rank() == kZero) {
    call("ncclGetUniqueId", nullptr, [&] { return nccl_.GetUniqueId(&id); });
    const at::Tensor bytes = tensor_of_text({id.bytes, sizeof id.bytes});
    for (std::size_t r = 1; r < ranks(); ++r) control_.send(RankId{r}, tag, {bytes});
  } else {
    const std::string bytes = text_of(control_.receive(kZero, tag).tensors.at(0));
    bytes.copy(id.bytes, sizeof id.bytes);
  }
  return id;
}

void NcclTransport::call(const std::string& what, nccl::Communicator of,
                         const std::function<int()>& call) {
  throw_if_failed();
  {
    const std::lock_guard lock(mutex_);
    calling_ = {what, Clock::now()};
  }
  int result = nccl::kSuccess;
  {
    const std::lock_guard inside(calls_);
    result = aborted_ ? static_cast<int>(nccl::kSuccess) : call();
  }
  // A communicator that is being made is known only after the call.
  const nccl::Communicator communicator = of ? of : world_;
  while (result == nccl::kInProgress && communicator) {
    throw_if_failed();
    std::this_thread::sleep_for(kPoll);
    const std::lock_guard inside(calls_);
    if (aborted_) break;
    const int asked = nccl_.CommGetAsyncError(communicator, &result);
    if (asked != nccl::kSuccess) result = asked;
  }
  {
    const std::lock_guard lock(mutex_);
    calling_.reset();
  }
  if (result != nccl::kSuccess) {
    // Often a consequence: the sockets may know why.
    if (const auto fault = control_.wait_for_failure(std::chrono::milliseconds(500))) throw *fault;
    throw RuntimeFault(stream_all(what, ": NCCL says ", nccl_.GetErrorString(result), " (",
                                  nccl_.GetLastError(communicator),
                                  "); last finished: ", last_done_.empty() ? "nothing" : last_done_,
                                  "; NCCL_DEBUG=INFO tells more"));
  }
  throw_if_failed();
}

c10::Stream NcclTransport::new_stream() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getNewStream(device_);
}

NcclTransport::Lane NcclTransport::lane(RankId from, RankId to) const {
  const auto own = lanes_.find({from, to});
  return own == lanes_.end() ? Lane{world_, stream_, {}} : own->second;
}

c10::Stream NcclTransport::current() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

/// Asks NCCL for one operation on each of the tensors, together, behind what the rank's stream has
/// been given so far.
NcclTransport::Coming NcclTransport::ask(const std::string& what, Tag tag, const Lane& lane,
                                         Tensors tensors,
                                         const std::function<int(const at::Tensor&)>& each) {
  let_go();
  std::erase_if(tensors, [](const at::Tensor& t) { return t.numel() == 0; });
  c10::Event ready(device_.type());
  ready.record(current());
  ready.block(lane.stream);
  const auto done = std::make_shared<c10::Event>(device_.type());
  {
    const std::lock_guard lock(
        mutex_);  // before the call, which may fail with half of it under way
    asked_.push_back({what, tag, Clock::now(), done, tensors});
  }
  if (!tensors.empty())
    call(what, lane.communicator, [&] {
      if (tensors.size() == 1) return each(tensors[0]);
      int result = nccl_.GroupStart();
      for (const at::Tensor& tensor : tensors)
        if (result == nccl::kSuccess || result == nccl::kInProgress) result = each(tensor);
      const int end = nccl_.GroupEnd();
      return result == nccl::kSuccess || result == nccl::kInProgress ? end : result;
    });
  const std::lock_guard lock(mutex_);
  done->record(lane.stream);
  asked_.back().given = true;
  return {done, std::move(tensors)};
}

/// Lets go of the tensors that the device is past. On the rank's thread, whose memory they are.
void NcclTransport::let_go() {
  std::deque<Exchange> gone;
  const std::lock_guard lock(mutex_);
  while (!asked_.empty() && asked_.front().is_done()) {
    last_done_ = asked_.front().what + name_of(asked_.front().tag);
    gone.push_back(std::move(asked_.front()));
    asked_.pop_front();
  }
}

Tag NcclTransport::form_tag(const Form& form) const {
  return {pipelines_ << 40 | static_cast<std::uint64_t>(form.samples), kFormTask,
          static_cast<std::uint32_t>(form.from.value << 16 | form.to.value << 1 |
                                     (form.onward ? 1 : 0))};
}

/// The receiver is told once; later messages must be alike.
NcclTransport::Layout NcclTransport::layout_of(RankId to, const Form& form,
                                               const Tensors& tensors) {
  const auto [place, fresh] = layouts_.try_emplace({to, false, form});
  if (!fresh) return place->second;
  std::vector<std::int64_t> layout_numbers;
  for (const at::Tensor& tensor : tensors) {
    Shape& shape = place->second.emplace_back();
    layout_numbers.push_back(tensor.defined() ? static_cast<std::int64_t>(tensor.scalar_type())
                                              : -1);
    if (!tensor.defined()) continue;
    shape = {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
    layout_numbers.push_back(tensor.dim());
    layout_numbers.insert(layout_numbers.end(), shape.sizes.begin(), shape.sizes.end());
    layout_numbers.insert(layout_numbers.end(), shape.strides.begin(), shape.strides.end());
  }
  control_.send(to, form_tag(form), {at::tensor(layout_numbers, at::kLong)});
  return place->second;
}

NcclTransport::Layout NcclTransport::layout_from(RankId from, const Form& form) {
  const auto [place, fresh] = layouts_.try_emplace({from, true, form});
  if (!fresh) return place->second;
  {
    const std::lock_guard lock(mutex_);
    calling_ = {"RECV from rank " + to_string(from) + ", whose first such SEND does not come",
                Clock::now()};
  }
  const at::Tensor layout_numbers = control_.receive(from, form_tag(form)).tensors.at(0);
  {
    const std::lock_guard lock(mutex_);
    calling_.reset();
  }
  const auto* at = layout_numbers.const_data_ptr<std::int64_t>();
  for (const auto* end = at + layout_numbers.numel(); at < end;) {
    Shape& shape = place->second.emplace_back();
    if (const std::int64_t type = *at++; type >= 0) {
      const std::int64_t dimensions = *at++;
      shape = {static_cast<at::ScalarType>(type),
               {at, at + dimensions},
               {at + dimensions, at + 2 * dimensions}};
      at += 2 * dimensions;
    }
  }
  return place->second;
}

void NcclTransport::send_in_row(RankId to, Tag tag, const Form& form, Tensors tensors) {
  for (at::Tensor& tensor : tensors) tensor = as_stored(tensor);
  const Layout layout = layout_of(to, form, tensors);
  const auto refuse = [&] {
    throw RuntimeFault("a message to rank " + to_string(to) +
                       " has other types or sizes than the first of its kind");
  };
  if (layout.size() != tensors.size()) refuse();
  Tensors sent;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shape& shape = layout[i];
    at::Tensor tensor = tensors[i];
    if (!shape.type) {
      if (tensor.defined()) refuse();
      continue;
    }
    if (tensor.defined() &&
        (tensor.sizes() != at::IntArrayRef(shape.sizes) || tensor.scalar_type() != *shape.type))
      refuse();
    if (!tensor.defined() || tensor.strides() != at::IntArrayRef(shape.strides)) {
      const at::Tensor like = at::empty_strided(
          shape.sizes, shape.strides, at::TensorOptions().dtype(*shape.type).device(device_));
      tensor = tensor.defined() ? like.copy_(tensor) : like.zero_();
    }
    sent.push_back(tensor);
  }
  const Lane on = lane(rank(), to);
  ask("SEND to rank " + to_string(to), tag, on, std::move(sent), [&](const at::Tensor& t) {
    const std::span<const char> bytes = stored_bytes(t);
    return nccl_.Send(bytes.data(), bytes.size(), nccl::kInt8, on.number_of(to), on.communicator,
                      on.stream.native_handle());
  });
}

void NcclTransport::expect(RankId from, Tag tag, const Form& form) {
  Tensors tensors, asked;
  for (const Shape& shape : layout_from(from, form)) {
    tensors.emplace_back();
    if (!shape.type) continue;
    tensors.back() = at::empty_strided(shape.sizes, shape.strides,
                                       at::TensorOptions().dtype(*shape.type).device(device_));
    asked.push_back(tensors.back());
  }
  const Lane on = lane(from, rank());
  Coming coming =
      ask("RECV from rank " + to_string(from), tag, on, std::move(asked), [&](const at::Tensor& t) {
        return nccl_.Recv(t.mutable_data_ptr(), t.nbytes(), nccl::kInt8, on.number_of(from),
                          on.communicator, on.stream.native_handle());
      });
  coming_[{from, tag}] = {coming.done, std::move(tensors)};
}

Message NcclTransport::receive(RankId from, Tag tag) {
  auto found = coming_.extract({from, tag});
  if (!found) return control_.receive(from, tag);
  throw_if_failed();
  found.mapped().done->block(current());
  return {std::move(found.mapped().tensors), now(), now()};
}

void NcclTransport::add_up(const std::vector<RankId>& parties, Tag tag, Tensors tensors) {
  const nccl::Communicator of = sums_.at(parties);
  for (at::Tensor& tensor : tensors) tensor = as_stored(tensor);
  Coming coming = ask("sum", tag, {of, stream_, {}}, tensors, [&](const at::Tensor& t) {
    const at::Tensor numbers = t.is_complex() ? at::view_as_real(t) : t;
    return nccl_.AllReduce(stored_bytes(numbers).data(), numbers.mutable_data_ptr(),
                           static_cast<std::size_t>(numbers.numel()),
                           sum_type(numbers.scalar_type()), nccl::kSum, of,
                           stream_.native_handle());
  });
  coming_sums_[tag] = {coming.done, std::move(tensors)};
}

Tensors NcclTransport::sum(Tag tag) {
  throw_if_failed();
  auto found = coming_sums_.extract(tag);
  PFEIFE_CHECK(found, "a sum that was not asked for");
  found.mapped().done->block(current());
  return std::move(found.mapped().tensors);
}

void NcclTransport::end_step() {
  wait_for_asked();
  stepped_ = true;
}

void NcclTransport::wait_for_asked() {
  for (;;) {
    let_go();
    throw_if_failed();
    {
      const std::lock_guard lock(mutex_);
      if (asked_.empty()) return;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void NcclTransport::prepare(const Exchanges& exchanges) {
  {
    const std::lock_guard lock(mutex_);
    name_ = exchanges.name;
  }
  layouts_.clear();
  ++pipelines_;
  for (const std::vector<RankId>& parties : exchanges.sums) {
    if (sums_.contains(parties)) continue;
    const bool party = std::ranges::binary_search(parties, rank());
    nccl::Communicator& communicator = sums_[parties];
    call("ncclCommSplit", world_, [&] {
      return nccl_.CommSplit(world_, party ? 0 : nccl::kNoColor, static_cast<int>(rank().value),
                             &communicator, nullptr);
    });
  }
  if (options_.queue_a_pair) make_lanes(exchanges);
  warm_up(exchanges);
}

void NcclTransport::make_lanes(const Exchanges& exchanges) {
  for (const auto& [from, to] : exchanges.messages) {
    if (lanes_.contains({from, to})) continue;
    const bool mine = from == rank() || to == rank();  // LibTorch has few streams
    const Lane lane{nullptr, mine ? new_stream() : stream_, std::max(from, to)};
    Lane& added_lane = lanes_.try_emplace({from, to}, lane).first->second;
    call("ncclCommSplit", world_, [&] {
      return nccl_.CommSplit(world_, mine ? 0 : nccl::kNoColor, static_cast<int>(rank().value),
                             &added_lane.communicator, nullptr);
    });
  }
}

/// Makes connections and loads kernels: in one order over all ranks, so that none waits for ever.
void NcclTransport::warm_up(const Exchanges& exchanges) {
  const auto single_zero = [&] {
    return at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device_));
  };
  const Tag tag{pipelines_, kWarmUpTask, 0};
  for (const auto& [from, to] : exchanges.messages) {
    if (!connected_.insert({from, to}).second) continue;
    const Lane on = lane(from, to);
    if (from == rank())
      ask("first message to rank " + to_string(to), tag, on, {single_zero()},
          [&](const at::Tensor& t) {
            return nccl_.Send(stored_bytes(t).data(), 1, nccl::kFloat32, on.number_of(to),
                              on.communicator, on.stream.native_handle());
          });
    if (to == rank())
      ask("first message from rank " + to_string(from), tag, on, {single_zero()},
          [&](const at::Tensor& t) {
            return nccl_.Recv(t.mutable_data_ptr(), 1, nccl::kFloat32, on.number_of(from),
                              on.communicator, on.stream.native_handle());
          });
  }
  for (const std::vector<RankId>& parties : exchanges.sums)
    if (std::ranges::binary_search(parties, rank())) {
      add_up(parties, tag, {single_zero()});
      sum(tag);
    }
  wait_for_asked();
}

std::string NcclTransport::name_of(Tag tag) const {
  const std::string name = tag.task == kWarmUpTask || !name_ ? "" : name_(tag.task);
  return name.empty() ? "" : " (" + name + ")";
}

void NcclTransport::throw_if_failed() {
  if (const auto fault = control_.wait_for_failure(std::chrono::milliseconds(0))) throw *fault;
}

void NcclTransport::watch() {
  const c10::DeviceGuard guard(device_);
  std::unique_lock lock(mutex_);
  while (!ending_) {
    end_.wait_for(lock, kLook, [&] { return ending_; });
    if (ending_) return;
    std::optional<RankFault> hangs = what_hangs();
    lock.unlock();
    if (hangs) control_.stop(*hangs);
    const bool failed = control_.wait_for_failure(std::chrono::milliseconds(0)).has_value();
    if (failed) abort();
    lock.lock();
  }
}

/// With mutex_ held.
std::optional<RankFault> NcclTransport::what_hangs() {
  std::string what;
  Clock::time_point since = Clock::now();
  const auto first = std::ranges::find_if(asked_, [](const Exchange& e) { return !e.is_done(); });
  if (first != asked_.end()) what = first->what + name_of(first->tag), since = first->since;
  if (calling_ && calling_->second < since) std::tie(what, since) = *calling_;
  const auto deadline = stepped_ ? options_.deadline : options_.first_deadline;
  if (Clock::now() - since < deadline) return {};
  return RankFault(rank(),
                   stream_all("rank ", rank().value, " waits in vain at ", what, " for ",
                              std::chrono::duration_cast<std::chrono::seconds>(deadline).count(),
                              " s; last finished: ", last_done_.empty() ? "nothing" : last_done_));
}

/// Frees whoever waits in NCCL. The rank's thread is not inside, or held up there.
void NcclTransport::abort() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    end_.notify_all();
  }
  const bool alone = calls_.try_lock_for(std::chrono::milliseconds(200));
  if (!aborted_.exchange(true)) {
    for (auto& [parties, communicator] : sums_)
      if (communicator) nccl_.CommAbort(communicator);
    for (auto& [pair, lane] : lanes_)
      if (lane.communicator) nccl_.CommAbort(lane.communicator);
    if (world_) nccl_.CommAbort(world_);
  }
  if (alone) calls_.unlock();
}

void NcclTransport::finish() {
  wait_for_asked();
  const auto give_back = [&](nccl::Communicator& communicator) {
    if (!communicator) return;
    call("ncclCommFinalize", communicator, [&] { return nccl_.CommFinalize(communicator); });
    call("ncclCommDestroy", nullptr,
         [&] { return nccl_.CommDestroy(std::exchange(communicator, nullptr)); });
  };
  for (auto& [parties, communicator] : sums_) give_back(communicator);
  for (auto& [pair, lane] : lanes_) give_back(lane.communicator);
  give_back(world_);
}

}  // namespace pfeife
