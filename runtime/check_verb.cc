#include "runtime/execute/check.h"
#include "runtime/verbs.h"

namespace pfeife {

int check_verb(CheckRequest request) {
  const Executable run = read_executable(request.what);
  require_training(run);
  run.place(request.launch);
  return start_ranks(run.pipeline.all_ranks(), request.launch, [&](const RankSeat& seat) {
    const CheckReport report = check_pipeline(run.pipeline, seat.rank, run.source, run.rank,
                                              request.tolerance, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    return RankAnswer{to_string(report),
                      report.right() ? "" : "the pipeline differs from the unsplit model"};
  });
}

}  // namespace pfeife
