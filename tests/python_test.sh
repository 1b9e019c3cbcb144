#!/usr/bin/env bash
# The Python package: built from an installed build into a fresh environment, then its tests, its notebooks, its types.
# Skipped (77) without python3 with headers and venv, or where pip reaches no packages.
# Usage: python_test.sh BUILD_FOLDER REPOSITORY
set -euo pipefail
build=$(cd "$1" && pwd) repository=$(cd "$2" && pwd)
python=${PFEIFE_PYTHON:-python3}
if ! "$python" -c 'import sysconfig, os, venv; assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null; then
  echo "skipped: $python has no headers or no venv (Debian: python3-dev python3-venv); set PFEIFE_PYTHON"
  exit 77
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
# The tools are kept beside the build; the package comes into an environment that has never seen it.
tools=$build/python-tools
if [[ ! -e $tools/ready ]]; then
  rm -rf "$tools"
  "$python" -m venv "$tools"
  if ! "$tools/bin/pip" install -q --disable-pip-version-check scikit-build-core nanobind numpy pytest mypy ruff distributed jsonschema >"$place/said" 2>&1; then
    cat "$place/said"
    echo "skipped: pip cannot install scikit-build-core, nanobind, numpy, pytest, mypy, ruff, distributed, jsonschema"
    exit 77
  fi
  touch "$tools/ready"
fi
# Always the same folder, so that what was compiled against it stays.
prefix=$build/python-prefix
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
export PATH=$tools/bin:$PATH
CMAKE_PREFIX_PATH=$prefix "$tools/bin/pip" wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
  --config-settings=build-dir="$build/python-wheel" -w "$place" "$repository" >"$place/said" 2>&1 || { cat "$place/said" && exit 1; }
"$python" -m venv --without-pip "$place/fresh"
"$tools/bin/pip" --python "$place/fresh/bin/python" install -q --disable-pip-version-check --no-deps "$place"/pfeife-*.whl
# numpy and pytest are those of the tools.
"$tools/bin/python" -c 'import site; print(site.getsitepackages()[0])' >"$("$place/fresh/bin/python" -c 'import site; print(site.getsitepackages()[0])')/tools.pth"
rm -rf "$prefix"  # nothing of it may be needed
cd "$place"
export PATH=$place/fresh/bin:$PATH PFEIFE_SOURCE=$repository
python -m pytest -q -p no:cacheprovider "$repository"/tests/python/test_{plan,schedule,config}.py
[[ ! -x $build/runtime/pfeife-run ]] || export PFEIFE_RUN=$build/runtime/pfeife-run  # which pipelines are compared with
# Modules and pipelines need torch: the same package and pytest in the Python that has it.
with_torch=${TORCH_PYTHON:-$repository/build/venv/bin/python}
version='import sys; print(sys.version_info[:2])'
if [[ $("$with_torch" -c "import torch; $version" 2>/dev/null) == "$(python -c "$version")" ]]; then
  PYTHONPATH=$(python -c 'import os, pfeife, pytest; print(os.path.dirname(os.path.dirname(pfeife.__file__)), os.path.dirname(os.path.dirname(pytest.__file__)), sep=":")') \
    "$with_torch" -W ignore -m pytest -q -p no:cacheprovider "$repository"/tests/python/test_{capture,pipeline,lengths,shared_head,slices,offload,layer_times,examples,fuzz}.py
else
  echo "SKIPPED: test_capture.py, test_pipeline.py, test_lengths.py, test_shared_head.py, test_slices.py, test_offload.py, test_layer_times.py, test_examples.py, test_fuzz.py: $with_torch has no torch, or is another Python than $(command -v python)"
fi
# A notebook runs anywhere, its cells one after the other.
mkdir "$place/notebooks" && cd "$place/notebooks"
run_cells='import json, sys
cells = [cell for cell in json.load(open(sys.argv[1]))["cells"] if cell["cell_type"] == "code"]
exec(compile("\n".join("".join(cell["source"]) for cell in cells), sys.argv[1], "exec"))'
for notebook in "$repository"/python/notebooks/*.ipynb; do
  echo "notebook ${notebook##*/}"
  python -c "$run_cells" "$notebook" >"$place/said" 2>&1 || { cat "$place/said" && exit 1; }
done
"$tools/bin/mypy" --cache-dir "$build/python-mypy" --python-executable "$place/fresh/bin/python" --disallow-untyped-defs --ignore-missing-imports -p pfeife
[[ ! -x $tools/bin/ruff ]] || "$tools/bin/ruff" check --quiet --no-cache --config "$repository/pyproject.toml" "$repository"/python "$repository"/tests/python
