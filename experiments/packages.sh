# The Debian packages that building and testing need, and how they are installed.
# Sourced by ./pfeife-exp and tests/run; defines functions and lists, does nothing by itself.

# What ./pfeife-exp needs.
build_packages=(
  g++ cmake ninja-build pkg-config
  libyaml-cpp-dev nlohmann-json3-dev libzip-dev zlib1g-dev libssl-dev
  libboost-program-options-dev libfmt-dev libsimgrid-dev
)
# What tests/run needs besides (python3-venv: LibTorch comes as a Python package; python3-dev: ours; Clp: an oracle for linear programs;
# Open MPI: ranks under a real mpirun; clang-format: version 14 in Debian 12; Chromium and
# Poppler: open the report and read its print).
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev coinor-libclp-dev python3-venv python3-dev openmpi-bin clang-format chromium poppler-utils)

# say MESSAGE...: a line on standard error.
say() { printf '%s\n' "$*" >&2; }

# Prints those of the given packages that are not installed.
missing_packages() {
  local installed package
  # It fails if it does not know one of them, which is an answer, too.
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true) "
  for package in "$@"; do
    [[ $installed == *" installed:$package "* ]] || printf '%s\n' "$package"
  done
}

# Runs a command with the right to install packages; fails if there is none.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    sudo "$@"
  else
    return 126
  fi
}

# What those may do who have no right to install packages, or another system.
say_own_folder() {
  say "Without root: put the libraries into a folder of your own and name it, CMAKE_PREFIX_PATH=FOLDER; what is missing"
  say "there is then said. For example:"
  say "  conda create -p FOLDER -c conda-forge cxx-compiler cmake ninja yaml-cpp nlohmann_json fmt libboost-devel openssl pkg-config libzip zlib"
}

# require_packages PACKAGE...: installs what is missing, after saying so. Where it cannot, prints the exact command and
# ends the script with exit code 2. Who names a folder of libraries in CMAKE_PREFIX_PATH needs no packages.
require_packages() {
  if [[ -n ${CMAKE_PREFIX_PATH:-} ]] && command -v cmake >/dev/null && command -v c++ >/dev/null; then
    say "pfeife: no packages are installed, libraries are looked for in CMAKE_PREFIX_PATH=$CMAKE_PREFIX_PATH and here"
    return 0
  fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    command -v cmake >/dev/null && command -v c++ >/dev/null && return 0  # another system, already prepared
    say "pfeife: this is not a Debian or Ubuntu system. Install what these Debian packages hold, then try again:"
    say "  $*"
    say_own_folder
    exit 2
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return 0
  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  say "pfeife: installing ${#missing[@]} missing packages (a minute or two): ${missing[*]}"
  local status=0
  as_root true || status=$?
  if ((status == 126)); then
    say "pfeife: no right to install packages here. Have this run as root, then try again:"
    say "  apt-get update && $command"
    say_own_folder
    exit 2
  fi
  if ! { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive $command -qq; } </dev/null >&2; then
    say "pfeife: the packages could not be installed. Once the cause above is removed, run as root:"
    say "  apt-get update && $command"
    exit 2
  fi
}

# build_in FOLDER CMAKE_OPTIONS -- TARGETS...: configures the repository into FOLDER (if needed) and builds the targets
# with progress on standard error; the compiler's words go to FOLDER/build.log and are shown if the build fails.
# Needs $root, the repository.
build_in() {
  local folder=$1 options=()
  shift
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  shift
  mkdir -p "$folder"
  # A build folder that was made for another place of the repository is of no use.
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles"
  fi
  local generator=()
  [[ -f $folder/CMakeCache.txt ]] || ! command -v ninja >/dev/null || generator=(-G Ninja)
  say "pfeife: configuring in $folder"
  if ! cmake -S "$root" -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "${options[@]}" \
      >"$folder/build.log" 2>&1 </dev/null; then
    tail -n 40 "$folder/build.log" >&2
    say "pfeife: configuring failed; the whole output is in $folder/build.log"
    return 4
  fi
  rm -f "$folder/build.failed"
  { NINJA_STATUS='[%p %e] ' cmake --build "$folder" --parallel "$(nproc)" --target "$@" 2>&1 </dev/null || echo failed >"$folder/build.failed"; } |
    tee -a "$folder/build.log" | show_progress
  if [[ -e $folder/build.failed ]]; then
    rm -f "$folder/build.failed"
    grep -E -A 12 'error|FAILED' "$folder/build.log" | head -n 60 >&2
    say "pfeife: the build failed; the whole output is in $folder/build.log"
    return 4
  fi
}

# time_left PERCENT SECONDS: "about 4 minutes left" of a build that has taken so many seconds; nothing while that is a guess.
time_left() {
  local percent=$1 seconds=$2 left
  ((percent >= 3 && seconds >= 10)) || return 0
  left=$((seconds * (100 - percent) / percent))
  if ((left >= 90)); then
    printf 'about %d minutes left' $(((left + 30) / 60))
  else
    printf 'about %d s left' "$left"
  fi
}

# Turns "[ 45% 12.3] Building ..." lines into a bar on a terminal, into a line every ten percent elsewhere. Drawn on standard error.
show_progress() {
  local line percent seconds last=-1 bar left tty=0
  [[ -t 2 ]] && tty=1
  while IFS= read -r line; do
    [[ $line =~ ^\[\ *([0-9]+)%(\ ([0-9]+))? ]] || continue
    percent=${BASH_REMATCH[1]} seconds=${BASH_REMATCH[3]:-0}
    left=$(time_left "$percent" "$seconds")
    if ((tty)); then
      printf -v bar '%*s' $((percent * 30 / 100)) ''
      printf '\rpfeife: building [%-30s] %3d %%  %-22s' "${bar// /#}" "$percent" "$left" >&2
    elif ((percent / 10 > last)); then
      last=$((percent / 10))
      say "pfeife: building, $percent %${left:+, $left}"
    fi
  done
  ((tty)) && printf '\r\033[K' >&2
  return 0
}
