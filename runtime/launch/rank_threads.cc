#include "runtime/launch/rank_threads.h"

#include <thread>

#include "planner/ir/error.h"
#include "runtime/device/device.h"
#include "runtime/transport/in_process_transport.h"
#include "runtime/transport/reason.h"

namespace pfeife {

void run_ranks(std::size_t ranks, at::Device device,
               const std::function<void(RankId, Transport&)>& body) {
  InProcessHub hub(ranks);
  std::vector<std::string> failures(ranks);
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
        failures[r] = reason_of(error);
        transport->stop("rank " + to_string(rank) + " failed: " + failures[r]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures)
    if (!failure.empty()) throw RuntimeFault(failure);
}

}  // namespace pfeife
