#!/usr/bin/env bash
# Perfetto's own trace processor reads trace.json: every slice and every arrow, without an error. Skipped (77) where none is
# installed; what can be said without it is in tests/plots/chrome_trace_test.cc.
# Usage: tests/trace_processor_test.sh PFEIFE_EXP REPOSITORY
set -euo pipefail
pfeife_exp=$(realpath "$1") root=$(realpath "$2")
processor=
for name in trace_processor_shell trace_processor; do
  command -v "$name" >/dev/null && processor=$name && break
done
[[ -n $processor ]] || { echo "skipped: no trace processor here (https://perfetto.dev/docs/analysis/trace-processor)" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
{
  echo name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes
  for layer in a b c d; do echo "$layer,1,1,1,1000,1000000,100000,1000,0"; done
} >layers.csv
printf '%s\n' "version: 1" "model: layers.csv" "cluster: $root/configs/clusters/3090_x8.yaml" \
  "cases: {devices: 2, microbatches: 4}" "plan: {families: [1f1b]}" >one.yaml
"$pfeife_exp" one.yaml --out out --quiet >/dev/null
trace=$(find out -name trace.json | head -1)
slices=$(grep -c '"ph":"X"' "$trace") arrows=$(grep -c '"ph":"s"' "$trace")
cat >query.sql <<'SQL'
select (select count(*) from slice) || ' ' || (select count(*) from flow) || ' ' ||
  (select ifnull(sum(value), 0) from stats where severity = 'error') as said;
SQL
said=$("$processor" -q query.sql "$trace")
# An arrow leads over its transfer: two flows.
[[ $said == *"$slices $((2 * arrows)) 0"* ]] ||
  { echo "expected $slices slices, $((2 * arrows)) flows, 0 errors; found $said" && exit 1; }
