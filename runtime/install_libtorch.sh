#!/usr/bin/env bash
# Installs LibTorch for the CPU parts of runtime/ as Python packages into a virtual environment, whose Python imports torch, too: it
# exports models.
# Usage: runtime/install_libtorch.sh DIR. Does nothing if it is there already. Prints LibTorch's folder.
# Exit code 1, after saying why, if the packages cannot be fetched: runtime/ is then skipped by CMake, visibly.
set -euo pipefail
folder=${1:?usage: runtime/install_libtorch.sh DIR}
# 530 MB, 2 MB, 11 MB, and 230 MB for what torch loads when it is imported. --no-deps: the other CUDA libraries (1.5 GB) are needed
# on GPUs only.
packages=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
  nvidia-cufile nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5)
python_packages=(filelock fsspec jinja2 networkx numpy sympy typing-extensions)

found() { "$folder/bin/python3" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])" 2>/dev/null; }

if [[ -f $folder/torch-installed ]] && found; then exit 0; fi
if ! python3 -m venv "$folder" >&2; then
  echo "runtime: python3 cannot make a virtual environment (Debian: apt-get install python3-venv)" >&2
  exit 1
fi
echo "runtime: fetching LibTorch (780 MB) into $folder" >&2
if ! "$folder/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --timeout 30 --retries 2 --no-deps "${packages[@]}" >&2 ||
  ! "$folder/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check --timeout 30 --retries 2 "${python_packages[@]}" >&2; then
  echo "runtime: LibTorch cannot be fetched; set LIBTORCH_ROOT to one that is installed, or build without runtime/" >&2
  exit 1
fi
touch "$folder/torch-installed"
found
