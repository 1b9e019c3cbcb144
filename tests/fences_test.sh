#!/usr/bin/env bash
# tests/fences.sh finds each kind of breach, and accepts what is allowed.
set -euo pipefail
fences=$(cd "$(dirname "$0")" && pwd)/fences.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{planner/{ir,io,cost,schedules,schedule_tool},sim,plots,experiments,python,configs,tests/python}
mkdir -p "$tree"/planner/ir/{basics,model,trace} "$tree"/planner/cost/{operators,estimate}
mkdir -p "$tree"/planner/io/{files,plan,results} "$tree"/planner/search/{bound,choices} "$tree"/runtime/{model,transport,train}

failures=0
# expect allowed|refused FILE INCLUDE [MORE TEXT]
expect() {
  local file=$tree/$2 status=0
  printf '#include %s\n%s\n' "$3" "${4:-}" >"$file"
  "$fences" "$tree" >/dev/null 2>&1 || status=$?
  rm "$file"
  if [[ $1 == allowed && $status != 0 || $1 == refused && $status != 1 ]]; then
    echo "not $1: #include $3 in $2 (exit code $status)"
    failures=$((failures + 1))
  fi
}

expect allowed planner/ir/a.h '<vector>'
expect allowed planner/ir/a.h '"planner/ir/basics/ids.h"'
expect refused planner/ir/a.cc '"planner/io/files/digest.h"'
expect refused planner/ir/a.cc '<unistd.h>'
expect refused planner/ir/a.cc '<fmt/format.h>'
printf 'struct Plan {\n' >"$tree/planner/ir/plan.h"
expect allowed planner/ir/a.h '<vector>' 'struct Planet {'
expect refused planner/cost/a.h '<vector>' 'struct Plan {'
expect refused planner/cost/a.h '<vector>' 'enum class Plan : char {'
expect allowed planner/cost/a.h '<vector>' $'namespace pfeife::cost {\nstruct Plan {'
rm "$tree/planner/ir/plan.h"
expect allowed planner/io/a.cc '<yaml-cpp/yaml.h>'
expect refused planner/io/a.h '<yaml-cpp/yaml.h>'
expect allowed planner/io/a.h '<nlohmann/json_fwd.hpp>'
expect refused planner/io/a.h '<nlohmann/json.hpp>'
expect refused planner/cost/a.cc '<nlohmann/json_fwd.hpp>'
expect refused planner/cost/a.cc '<nlohmann/json.hpp>'
expect refused planner/cost/a.cc '"sim/simulator.h"'
expect refused sim/a.cc '"planner/cost/estimate/estimator.h"'
expect allowed sim/a.cc '"planner/io/files/digest.h"'
expect allowed sim/a.cc '<simgrid/s4u.hpp>'
expect refused plots/a.cc '<simgrid/s4u.hpp>'
expect refused plots/a.cc '"planner/io/files/digest.h"'
expect refused plots/a.cc '"sim/simulator.h"'
expect refused experiments/a.cc '<torch/torch.h>'
expect refused experiments/a.cc '<boost/program_options.hpp>'
expect allowed experiments/a.cc '<boost/program_options.hpp>' 'int main() {}'
expect allowed planner/io/files/command_line.h '<boost/program_options.hpp>'
expect refused planner/io/files/a.h '<boost/program_options.hpp>'
expect refused planner/io/a.cc '"ids.h"'
expect allowed planner/schedule_tool/a.cc '"planner/cost/stages/stage_bounds.h"'
expect refused planner/schedule_tool/a.cc '"planner/search/search.h"'
expect refused planner/io/files/a.cc '"planner/cost/estimate/memory.h"'
expect refused planner/cost/a.cc '"planner/search/search.h"'
expect refused planner/schedules/a.cc '"planner/cost/estimate/memory.h"'
expect refused experiments/a.cc '"runtime/train/training.h"'
# Rooms: downwards and within, never upwards; what stands beside them is above all.
expect allowed planner/ir/trace/a.h '"planner/ir/basics/ids.h"'
expect refused planner/ir/basics/a.h '"planner/ir/model/graph.h"'
expect allowed planner/cost/estimate/a.cc '"planner/cost/operators/work.h"'
expect refused planner/cost/operators/a.cc '"planner/cost/estimate/memory.h"'
expect allowed planner/io/plan/a.cc '"planner/io/files/digest.h"'
expect allowed planner/io/plan/a.cc '"planner/io/plan/plan_file.h"'
expect refused planner/io/plan/a.cc '"planner/io/results/results_file.h"'
expect refused planner/io/files/a.h '"planner/io/model/imported_layers.h"'
expect allowed planner/search/bound/a.cc '"planner/search/problem.h"'
expect refused planner/search/bound/a.cc '"planner/search/search.h"'
expect refused planner/search/problem.h '"planner/search/price/candidate.h"'
expect allowed planner/search/choices/a.cc '"planner/search/search.h"'
expect allowed runtime/train/a.cc '"runtime/model/stage.h"'
expect refused runtime/model/a.cc '"runtime/transport/transport.h"'
expect refused runtime/train/a.cc '"runtime/run.h"'
expect allowed runtime/run.cc '"runtime/train/training.h"'
# A tensor's memory.
expect refused runtime/model/a.cc '<vector>' 'auto bytes = tensor.const_data_ptr();'
expect allowed runtime/model/a.cc '<vector>' 'auto numbers = tensor.const_data_ptr<double>();'
# Names.
expect refused planner/cost/a.cc '<vector>' 'const Layer& one = layers[0];'
expect refused planner/cost/a.cc '<vector>' 'for (const auto& some : layers)'
expect refused plots/a.cc '<vector>' 'const std::string of = title;'
expect allowed plots/a.cc '<vector>' 'lost.of(loss);  // the time of (all) losses'
expect allowed planner/cost/a.cc '<vector>' 'layers("of some, one");  // not this one, or those made'
# A line "#include <vector>" is a comment in Python.
expect refused python/a.py '<vector>' 'sizes = [one.nbytes for one in tensors]'
expect refused python/a.py '<vector>' 'def show(said): pass'
expect refused python/a.py '<vector>' 'class Either: known = 1'
expect refused python/known.py '<vector>'
expect refused tests/python/a.py '<vector>' 'def show(): self.other = 1'
expect allowed tests/python/a.py '<vector>' 'said = made = 1'
expect refused configs/a.py '<vector>' 'key = lambda of: of[0]'
expect refused experiments/a.py '<vector>' 'for rank, made in enumerate(rows): pass'
expect refused experiments/a.py '<vector>' 'if (some := rows): pass'
expect refused python/a.py '<vector>' 'def show(rank): """Of a rank."""'
expect allowed python/a.py '<vector>' $'def show(rank):\n  """The text of a rank."""\n  show(one.of, made="told")  # of one'
expect refused planner/ir/CamelCase.h '<vector>'
expect refused planner/ir/a.h '<vector>' 'class StageManager {};'
expect allowed planner/ir/a.h '<vector>' 'class Stage {};'
# Comments.
expect refused planner/ir/a.h '<vector>' '/// Of the stages the first.'
expect refused planner/ir/a.h '<vector>' 'int a;  ///< Likewise.'
expect refused tests/a.cc '<vector>' '  // Those that fit.'
expect allowed planner/ir/a.h '<vector>' $'/// The first of the stages.\nint a;  ///< of those'
echo '| `judge.cc` | 2 | all |' >"$tree/planner/schedule_tool/README.md"
expect allowed planner/schedule_tool/judge.cc '<vector>' 'int two;'
expect refused planner/schedule_tool/judge.cc '<vector>' $'int two;\nint three;'
exit $((failures > 0))
