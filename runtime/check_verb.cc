#include "runtime/check_verb.h"

#include "runtime/check.h"

namespace pfeife {
namespace {

double default_tolerance(const RankOptions& rank) {
  if (rank.autocast_bf16) return 5e-2;
  // float32: a gradient adds about sqrt(10^4) roundings of 6e-8 in another order.
  return rank.placing.double_precision ? 1e-12 : 1e-4;
}

}  // namespace

int check_verb(const CheckRequest& request) {
  const Executable run = read_executable(request.what);
  const double tolerance = request.tolerance.value_or(default_tolerance(run.rank));
  return start_ranks(run.pipeline.ranks(), request.launch, [&](const RankSeat& seat) {
    const CheckReport report =
        check_pipeline(run.pipeline, seat.rank, run.source, run.rank, tolerance, seat.transport);
    if (seat.rank != RankId{0}) return RankAnswer{};
    return RankAnswer{to_string(report, tolerance),
                      report.right() ? "" : "the pipeline differs from the unsplit model"};
  });
}

}  // namespace pfeife
