#include "experiments/sweep/record.h"

#include <sstream>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/case_drawings.h"
#include "experiments/plans/case_record.h"
#include "experiments/plans/plan_folder.h"
#include "experiments/sweep/old_plans.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/ir/result/case_files.h"

namespace pfeife {

CaseRecord record_of(const EvaluatedCase& evaluated, const CaseConfig& config) {
  CaseRecord record = record_of(evaluated, static_cast<const Request&>(config));
  record.named = config.named;
  record.swept = config.swept;
  record.resolved = resolved_text(config);
  return record;
}

void write_plans(const std::filesystem::path& folder, EvaluatedCase& evaluated,
                 const Replaced& values) {
  std::vector<std::string> names;
  for (const Evaluation* plan : kept_plans(evaluated)) names.push_back(plan->name);
  const PlanSettings& asked = evaluated.config->plan;
  const auto& input = asked.file ? asked.file : asked.schedule;
  remove_old_plans(folder, names, input.value_or(""));
  const std::filesystem::path replaced = folder / case_file::kCluster;
  if (values.empty())
    remove_file(replaced);
  else
    write_file(replaced, cluster_text(evaluated.config->cluster, values));
  const PlanFiles files = plan_files(evaluated.config->model, evaluated.config->replicas,
                                     values.empty() ? evaluated.config->cluster : replaced);
  for (Evaluation* plan : kept_plans(evaluated)) {
    plan->plan.files = seen_from(files, folder / plan->name);
    write_plan_folder(folder / plan->name, plan->plan, plan->costs, *plan->inputs.layers);
  }
  const std::filesystem::path proof = folder / kPlanned / "certificate.txt";
  const Evaluation& chosen = evaluated.planned[evaluated.chosen];
  const auto& certificate = evaluated.answer().certificate;
  if (certificate && (chosen.plan.bound || !chosen.possible()))
    write_file(proof, certificate_text(*certificate));
  else
    remove_file(proof);
}

void write_drawings(const std::filesystem::path& folder, const EvaluatedCase& evaluated) {
  const CaseDrawings drawings = drawings_of(evaluated);
  const auto write = [&](std::string_view file, const std::string& picture) {
    if (picture.empty())
      remove_file(folder / file);
    else
      write_file(folder / file, picture);
  };
  write(case_file::kTraces, packed_traces(evaluated));
  write(case_file::kPlans, drawings.plans);
  write(case_file::kRankTimes, drawings.rank_times);
  write(case_file::kMemory, drawings.memory);
  write(case_file::kPartition, drawings.partition);
  write(case_file::kLinks, drawings.links);
  std::vector<const Evaluation*> plans{&evaluated.planned[evaluated.chosen]};
  for (const Evaluation& baseline : evaluated.baselines) plans.push_back(&baseline);
  if (evaluated.less_memory) plans.push_back(&evaluated.planned[*evaluated.less_memory]);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i]->possible()) continue;
    write_file(folder / plans[i]->name / "timeline.svg", drawings.timelines[i]);
    std::ostringstream trace;
    write_chrome_trace(trace, traces_of(*plans[i]),
                       schedule_name(row_of(*plans[i])) + ", " + evaluated.config->name);
    write_file(folder / plans[i]->name / "trace.json", trace.str());
  }
}

}  // namespace pfeife
