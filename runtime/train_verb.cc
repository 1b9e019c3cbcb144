#include "runtime/train_verb.h"

#include "planner/io/atomic_file.h"
#include "runtime/measure.h"

namespace pfeife {

int train_verb(const TrainRequest& request) {
  const Executable run = read_executable(request.what);
  return start_ranks(run.pipeline.ranks(), request.launch, [&](const RankSeat& seat) {
    const Measurement measured =
        measure_steps(run.pipeline, seat.rank, run.source, run.rank, request.steps, seat.turns,
                      seat.entering, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    if (!request.out.empty()) write_file(request.out, measurement_text(measured));
    return RankAnswer{to_string(measured), ""};
  });
}

}  // namespace pfeife
