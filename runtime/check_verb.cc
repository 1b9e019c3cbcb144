#include "runtime/check_verb.h"

#include "runtime/execute/check.h"

namespace pfeife {
namespace {

double default_tolerance(const RankOptions& rank, bool tf32) {
  if (rank.autocast) return 5e-2;
  if (tf32 && !rank.placing.device.is_cpu()) return 5e-2 / 8;  // three bits more than bf16
  // float32: a gradient adds about sqrt(10^4) roundings of 6e-8 in another order.
  return rank.placing.double_precision ? 1e-12 : 1e-4;
}

}  // namespace

int check_verb(CheckRequest request) {
  const Executable run = read_executable(request.what);
  const bool tf32 = run.plan && run.plan->training.precision == Precision::Tf32;
  const double tolerance = request.tolerance.value_or(default_tolerance(run.rank, tf32));
  run.place(request.launch);
  return start_ranks(run.pipeline.all_ranks(), request.launch, [&](const RankSeat& seat) {
    const CheckReport report =
        check_pipeline(run.pipeline, seat.rank, run.source, run.rank, tolerance, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    return RankAnswer{to_string(report, tolerance),
                      report.right() ? "" : "the pipeline differs from the unsplit model"};
  });
}

}  // namespace pfeife
