#include "experiments/show/plan_page.h"

#include <memory>

#include "experiments/measure/compared.h"
#include "experiments/pfeife.h"
#include "experiments/plans/evaluated_case.h"
#include "planner/io/files/open_file.h"

namespace pfeife {

std::string plan_page(const std::filesystem::path& plan,
                      std::span<const std::filesystem::path> traces) {
  if (!is_folder(plan) && plan.filename() != "plan.yaml")
    throw ConfigError({plan.string()}, "is no plan; give plan.yaml, or its folder");
  const Planned loaded = load_plan(is_folder(plan) ? plan : plan.parent_path());
  if (traces.empty()) return report(loaded);
  EvaluatedCase measured = *loaded.evaluated;
  Evaluation& shown = measured.planned.at(measured.chosen);
  Comparison run = compare_with_traces(plan, traces, shown.simulated);
  // Predictions are without the optimizer, too, if the run has none.
  shown.estimated = std::move(run.estimated);
  shown.simulated = std::move(run.simulated);
  shown.measurement = std::move(run.measurement);
  Planned beside = loaded;
  beside.evaluated = std::make_shared<const EvaluatedCase>(std::move(measured));
  return report(beside);
}

}  // namespace pfeife
