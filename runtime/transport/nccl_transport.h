// Messages between cards by NCCL.
#pragma once

#include <c10/core/Event.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/device/device.h"
#include "runtime/transport/nccl_library.h"
#include "runtime/transport/socket_transport.h"
#include "runtime/transport/transport.h"

namespace pfeife {

// Messages between cards by NCCL: a process and a card a rank, one communicator and one
// communication stream each, or one for each pair of ranks and direction; sums over some ranks on
// communicators split from it.
//
// NCCL works in the order in which it is asked and may hold a rank until its peer has asked, too:
// so it is asked in the order of the rows, which is free of deadlock with SEND, RECV and
// REDUCE_GRAD that block. All else (unique id, forms of messages, losses, failures) goes over the
// sockets.

struct NcclOptions {
  /// After so long an exchange is taken to hang, from the end of the first step on. A rank that is
  /// gone is noticed by the sockets long before.
  std::chrono::milliseconds deadline = std::chrono::minutes(10);
  /// The same until then: ranks read their models, and kernels are loaded.
  std::chrono::milliseconds first_deadline = std::chrono::minutes(10);
  /// Messages of each ordered pair of ranks have a communicator and a stream of their own.
  bool queue_a_pair = false;
};

/// `deadline` for steps that are estimated to take so long: twenty of them, at least two minutes
/// (data may be read and checkpoints written meanwhile).
std::chrono::milliseconds hang_deadline(Nanoseconds estimated_step);

class NcclTransport final : public Transport {
 public:
  /// Every rank must call it, on the thread that will use it, which works on `device`. `control`
  /// must outlive it. The ranks have agreed on their version and on cards of their own
  /// (launch/agreement.h). RankFault: a rank that fails meanwhile.
  NcclTransport(SocketTransport& control, const NcclLibrary& nccl, at::Device device,
                NcclOptions options);
  /// Breaks off what is not finished.
  ~NcclTransport() override;

  RankId rank() const override { return control_.rank(); }
  std::size_t ranks() const override { return control_.ranks(); }
  void send(RankId to, Tag tag, Tensors tensors) override { control_.send(to, tag, tensors); }
  Message receive(RankId from, Tag tag) override;
  void stop(const RankFault& fault) override { control_.stop(fault); }

  bool keeps_rows() const override { return true; }
  /// Makes the communicators of the sums, and every connection.
  void prepare(const Exchanges& exchanges) override;
  void send_in_row(RankId to, Tag tag, const Form& form, Tensors tensors) override;
  void expect(RankId from, Tag tag, const Form& form) override;
  void add_up(const std::vector<RankId>& parties, Tag tag, Tensors tensors) override;
  Tensors sum(Tag tag) override;
  void end_step() override;

  /// Every rank must call it at the end: gives the communicators back in good order.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Shape {  // of a tensor; undefined without a type
    std::optional<at::ScalarType> type;
    std::vector<std::int64_t> sizes, strides;
  };
  using Layout = std::vector<Shape>;
  /// What NCCL was asked for. The tensors live until the device is past it.
  struct Exchange {
    std::string what;
    Tag tag;
    Clock::time_point since;
    std::shared_ptr<c10::Event> done;
    Tensors tensors;
    bool given = false;  // to the device: `done` is recorded
    bool is_done() const { return given && done->query(); }
  };
  struct Coming {
    std::shared_ptr<c10::Event> done;
    Tensors tensors;
  };

  /// Where operations stand in one line: a communicator and a stream.
  struct Lane {
    nccl::Communicator communicator = nullptr;
    c10::Stream stream;
    std::optional<RankId> second;  ///< of two ranks alone: the higher one
    /// What the communicator calls a rank.
    int number_of(RankId r) const {
      return static_cast<int>(second ? (r == *second ? 1 : 0) : r.value);
    }
  };

  nccl::UniqueId share_id();
  Lane lane(RankId from, RankId to) const;
  void make_lanes(const Exchanges& exchanges);
  c10::Stream new_stream() const;
  void call(const std::string& what, nccl::Communicator of, const std::function<int()>& call);
  Coming ask(const std::string& what, Tag tag, const Lane& lane, Tensors tensors,
             const std::function<int(const at::Tensor&)>& each);
  Layout layout_of(RankId to, const Form& form, const Tensors& tensors);
  Layout layout_from(RankId from, const Form& form);
  void warm_up(const Exchanges& exchanges);
  Tag form_tag(const Form& form) const;
  c10::Stream current() const;
  void let_go();
  void wait_for_asked();
  void throw_if_failed();
  std::string name_of(Tag tag) const;
  void watch();
  std::optional<RankFault> what_hangs();
  void abort();

  SocketTransport& control_;
  NcclLibrary nccl_;
  at::Device device_;
  NcclOptions options_;
  c10::Stream stream_;
  nccl::Communicator world_ = nullptr;
  std::map<std::pair<RankId, RankId>, Lane> lanes_;         ///< (from, to); null: of other ranks
  std::map<std::vector<RankId>, nccl::Communicator> sums_;  ///< null: not a party
  std::set<std::pair<RankId, RankId>> connected_;
  std::function<std::string(std::uint32_t)> name_;
  std::uint64_t pipelines_ = 0;  ///< prepared so far: tells their forms apart
  std::map<std::tuple<RankId, bool, Form>, Layout> layouts_;  ///< (peer, received)
  std::map<std::pair<RankId, Tag>, Coming> coming_;
  std::map<Tag, Coming> coming_sums_;

  std::timed_mutex calls_;  ///< held while the rank's thread is inside NCCL
  std::mutex mutex_;        ///< of what follows
  std::deque<Exchange> asked_;
  std::optional<std::pair<std::string, Clock::time_point>> calling_;
  std::string last_done_;
  std::atomic<bool> aborted_{false}, stepped_{false};  ///< stepped: a step has been done
  bool ending_ = false;
  std::condition_variable end_;
  std::thread watchdog_;
};

}  // namespace pfeife
