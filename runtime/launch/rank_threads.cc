#include "runtime/launch/rank_threads.h"

#include <optional>
#include <thread>

#include "planner/ir/basics/error.h"
#include "runtime/device/device.h"
#include "runtime/transport/in_process_transport.h"
#include "runtime/transport/reason.h"

namespace pfeife {

void run_ranks(std::size_t ranks, at::Device device,
               const std::function<void(RankId, Transport&)>& body) {
  InProcessHub hub(ranks);
  std::vector<std::optional<RankFault>> failures(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const RankId rank{r};
      const auto transport = hub.transport(rank);
      try {
        const DeviceThread place(device);
        body(rank, *transport);
        finish(device);
      } catch (const std::exception& error) {
        failures[r] = rank_fault(error, rank);
        transport->stop(*failures[r]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) throw *failure;
}

}  // namespace pfeife
