#!/usr/bin/env bash
# ./pfeife-exp on a machine that is not ready, and on one that is: with stand-ins for the system's programs, in a copy of
# the launcher's own files, so that nothing is installed or built.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

repository=$place/repository
mkdir -p "$repository"/{planner,sim,plots,experiments} "$place/bin" "$place/elsewhere"
cp "$root/pfeife-exp" "$repository/"
cp "$root/experiments/packages.sh" "$repository/experiments/"
touch "$repository/CMakeLists.txt"

# stand_in NAME TEXT: a program of that name, which notes its calls in $place/calls.
stand_in() {
  printf '#!/usr/bin/env bash\nprintf "%%s\\n" "%s $*" >>%q\n%s\n' "$1" "$place/calls" "$2" >"$place/bin/$1"
  chmod +x "$place/bin/$1"
}
export PATH=$place/bin:$PATH
stand_in apt-get ""
stand_in sudo '[[ $1 == -n ]] && exit "${SUDO_REFUSED:-0}"; exec "$@"'
stand_in cmake '
if [[ $1 == -S ]]; then mkdir -p "$4"; touch "$4/CMakeCache.txt"; exit 0; fi
[[ -z ${BUILD_FAILS:-} ]] || { echo "x.cc:1: error: broken"; exit 1; }
echo "[ 50%] Building"; mkdir -p "$2/experiments"
printf "%s\n" "#!/usr/bin/env bash" "printf \"<%s>\" \"\$@\"; exit 3" >"$2/experiments/pfeife-exp"
chmod +x "$2/experiments/pfeife-exp"'

failures=0
# check WHAT COMMAND...: the command must succeed.
check() {
  local what=$1
  shift
  "$@" || { echo "not so: $what" && failures=$((failures + 1)); }
}
# launch PROGRAM ARGUMENTS...: its exit code in $code, its output in $place/out and $place/err, its calls in $place/calls.
launch() {
  : >"$place/calls" && chmod a+rw "$place/calls"
  code=0
  "$@" >"$place/out" 2>"$place/err" </dev/null || code=$?
}
called() { grep -q -- "$1" "$place/calls"; }
not() { ! "$@"; }

# Nothing is installed, and there is no right to install.
stand_in dpkg-query 'exit 1'
as_user() { [[ $EUID -ne 0 ]]; }
if ! as_user; then
  # The same as a user without sudo, for a root that runs this test.
  runner=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod -R a+rwX "$place"
  command -v setpriv >/dev/null || runner=()
else
  runner=()
fi
if as_user || ((${#runner[@]} > 0)); then
  SUDO_REFUSED=1 launch "${runner[@]}" "$repository/pfeife-exp" a.yaml
  check "without the right to install, the exit code is 2" [ "$code" = 2 ]
  check "the exact command is printed" grep -q "apt-get install -y --no-install-recommends g++ cmake" "$place/err"
  check "and what to do without root" grep -q "CMAKE_PREFIX_PATH=FOLDER" "$place/err"
  check "nothing is installed" not called "apt-get install"
  check "nothing is built" not called "^cmake"
  CMAKE_PREFIX_PATH=/a/folder SUDO_REFUSED=1 launch "${runner[@]}" "$repository/pfeife-exp" a.yaml
  check "libraries in a folder need no packages" called "cmake -S"
  check "and none is installed" not called "apt-get"
  rm -rf "$repository/build"
fi

# The right is there.
launch "$repository/pfeife-exp" "a b.yaml" --set "x=[1, 2]"
check "what is installed is said" grep -q "installing .* missing packages (a minute or two): g++" "$place/err"
check "and how long the build takes" grep -q "builds the program once (about [1-9][0-9]* min on $(nproc) cores" "$place/err"
check "packages are installed" called "apt-get install"
check "the build is configured once" called "cmake -S"
check "only two programs are built" called "--target pfeife-exp pfeife-schedule"
check "progress is shown" grep -q "building, 50 %" "$place/err"
check "arguments reach the program unchanged" [ "$(cat "$place/out")" = "<a b.yaml><--set><x=[1, 2]>" ]
check "the program's exit code is the launcher's" [ "$code" = 3 ]

# Built: nothing is looked for again, from another folder and through links.
ln -s "$repository/pfeife-exp" "$place/elsewhere/link"
ln -s elsewhere/link "$place/link"
cd "$place/elsewhere"
launch ../link b.yaml
check "a link works from another folder" [ "$(cat "$place/out")" = "<b.yaml>" ]
check "nothing is called when nothing changed" [ ! -s "$place/calls" ]
check "nothing is said when nothing changed" [ ! -s "$place/err" ]

# A source changed; the build fails, then works.
sleep 0.01
mkdir -p "$repository/planner/io"
touch "$repository/planner/io/new.cc"
stand_in dpkg-query 'for package in "${@:3}"; do printf "installed:%s " "$package"; done'
BUILD_FAILS=1 launch "$repository/pfeife-exp" c.yaml
check "a build that fails has exit code 4" [ "$code" = 4 ]
check "a build that fails shows the error" grep -q "x.cc:1: error: broken" "$place/err"
launch "$repository/pfeife-exp" c.yaml
check "a newer source is built" called "cmake --build"
check "installed packages are left alone" not called "apt-get"
launch "$repository/pfeife-exp" c.yaml
check "and only once" [ ! -s "$place/calls" ]

# A config that measures: the program is asked, then LibTorch is fetched and pfeife-run built, once.
mkdir -p "$repository/runtime"
printf '%s\n' "#!/usr/bin/env bash" "printf 'fetched into %s\\n' \"\$1\" >>'$place/calls'; exit \"\${FETCH_FAILS:-0}\"" \
  >"$repository/runtime/install_libtorch.sh"
chmod +x "$repository/runtime/install_libtorch.sh"
stand_in python3 ""
stand_in cmake '
if [[ $1 == -S ]]; then exit 0; fi
for target in "$@"; do
  [[ $target == pfeife-run ]] && mkdir -p "$2/runtime" && printf "#!/bin/sh\n" >"$2/runtime/pfeife-run" && chmod +x "$2/runtime/pfeife-run"
done; exit 0'
program=$repository/build/release/experiments/pfeife-exp
printf '%s\n' "#!/usr/bin/env bash" \
  "for a in \"\$@\"; do [[ \$a == --measures ]] && exit \"\${MEASURES:-0}\"; done" "printf '<%s>' \"\$@\"" >"$program"
cd "$place/elsewhere"
echo "engines: [estimate, measure]" >m.yaml
unset LIBTORCH_ROOT
MEASURES=1 launch ../link m.yaml
check "a config that only has the word in it fetches nothing" not called "fetched"
check "nor builds anything" [ ! -s "$place/calls" ]
FETCH_FAILS=1 launch ../link m.yaml
check "without LibTorch a measuring config has exit code 2" [ "$code" = 2 ]
check "and the remedy is said" grep -q "set LIBTORCH_ROOT" "$place/err"
launch ../link m.yaml
check "a measuring config fetches LibTorch" called "fetched into $repository/build/venv"
check "and builds pfeife-run" called "--target pfeife-run"
check "before the program runs" [ "$(cat "$place/out")" = "<m.yaml>" ]
launch ../link m.yaml
check "both only once" not called "fetched"
launch ../link b.yaml --set "engines=[measure]"
check "a setting may ask for it, too" [ "$(cat "$place/out")" = "<b.yaml><--set><engines=[measure]>" ]
touch "$repository/runtime/new.cc"
LIBTORCH_ROOT=/opt/torch launch ../link m.yaml
check "LibTorch that is named is not fetched" not called "fetched"
check "but taken" called "-DLibTorch_ROOT=/opt/torch"

exit $((failures > 0))
