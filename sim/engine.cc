#include "sim/engine.h"

#include <cmath>
#include <simgrid/s4u.hpp>

#include "planner/ir/basics/error.h"
#include "sim/platform.h"

namespace pfeife {

namespace sg4 = simgrid::s4u;

namespace {

/// One run of a workload: launches a task when everything it waits for has ended.
class Run {
 public:
  Run(const EngineWork& work, Platform& platform, std::uint64_t number)
      : work_(work.workload),
        platform_(platform),
        jitter_(number == 0 ? Jitter{} : work.jitter, number == 0 ? 0 : number - 1),
        waits_(work.workload.waits),
        live_(work.workload.size()),
        ends_(work.workload.size(), -1),
        origin_(sg4::Engine::get_clock()) {}

  std::vector<std::int64_t> go(sg4::Engine& engine) {
    for (std::size_t t = 0; t < work_.size(); ++t)
      if (work_.waits[t] == 0) launch(t);
    engine.run();
    return std::move(ends_);
  }

  void completed(const sg4::Activity& activity) {
    const auto tag = reinterpret_cast<std::intptr_t>(activity.get_data<void>());
    const auto task = static_cast<std::size_t>(tag - 1);
    ends_[task] = std::llround((activity.get_finish_time() - origin_) * 1e9);
    finished_.push_back(task);
    for (std::uint32_t i = work_.next_begin[task]; i < work_.next_begin[task + 1]; ++i)
      if (--waits_[work_.next[i]] == 0) launch(work_.next[i]);
  }

  /// Activities must not be destroyed while SimGrid walks over them; between two dates they may.
  void release() {
    for (const std::size_t task : finished_) live_[task] = nullptr;
    finished_.clear();
  }

 private:
  void launch(std::size_t task) {
    const WorkItem& item = work_.items[task];
    const Nanoseconds busy = jitter_.vary(item.busy, task, item.kind);
    void* tag = reinterpret_cast<void*>(static_cast<std::intptr_t>(task) + 1);
    if (item.how == WorkItem::How::Flow && busy > Nanoseconds{0}) {
      live_[task] = platform_.start_flow(item.route, item.bytes, item.fixed, busy, tag);
      return;
    }
    sg4::ExecPtr timer = sg4::Exec::init();
    timer->set_flops_amount(static_cast<double>((item.fixed + busy).count()));
    timer->set_data(tag);
    timer->set_host(item.how == WorkItem::How::Compute ? platform_.rank(item.rank)
                                                       : platform_.timer(item.rank));
    live_[task] = timer;
    timer->start();
  }

  const Workload& work_;
  Platform& platform_;
  JitterSource jitter_;
  std::vector<std::uint32_t> waits_;
  std::vector<sg4::ActivityPtr> live_;
  std::vector<std::size_t> finished_;
  std::vector<std::int64_t> ends_;
  double origin_;
};

/// SimGrid's callbacks belong to the process and cannot be taken back; they reach the run of the
/// moment through this.
Run* current_run = nullptr;

}  // namespace

void run_engine(
    const EngineWork& work,
    const std::function<void(std::uint64_t run, std::vector<std::int64_t> ends)>& on_ends) {
  int argc = 1;
  char name[] = "pfeife", *argv[] = {name, nullptr};
  sg4::Engine engine(&argc, argv);
  configure_simgrid();
  Platform platform(work.workload);
  sg4::Activity::on_completion_cb([](const sg4::Activity& a) { current_run->completed(a); });
  sg4::Engine::on_time_advance_cb([](double) {
    if (current_run != nullptr) current_run->release();
  });
  for (std::uint64_t number = work.first; number < work.last; ++number) {
    Run run(work, platform, number);
    current_run = &run;
    std::vector<std::int64_t> ends = run.go(engine);
    run.release();
    current_run = nullptr;
    on_ends(number, std::move(ends));
  }
}

}  // namespace pfeife
