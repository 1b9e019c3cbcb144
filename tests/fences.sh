#!/usr/bin/env bash
# Who may include whom, how files are named, and how long the judge of certificates may be: prints every breach of a rule,
# and fails if there is one.
# Usage: tests/fences.sh [--arrows] [REPOSITORY]. The rules are those of README.md.
# --arrows: prints for each folder and room how many of its includes lead into another one, and how many of those upwards.
set -euo pipefail
arrows=0
[[ ${1:-} == --arrows ]] && arrows=1 && shift
cd "${1:-$(dirname "$0")/..}"

# All includes as FILE:LINE:HEADER, <header> without its brackets, "header" with a leading quote.
includes() {
  local folders=() folder
  for folder in planner sim plots experiments python runtime tests; do [[ -d $folder ]] && folders+=("$folder"); done
  grep -rnHE --include='*.h' --include='*.cc' --include='*.cu' '^[[:space:]]*#[[:space:]]*include' "${folders[@]}" |
    sed -E 's/^([^:]+:[0-9]+):[^<"]*(<([^>]+)>|("[^"]+)").*/\1:\3\4/'
}

# This and the three functions below answer in REPLY: a subshell for each include would take most of the time.
# The rooms of a folder, the lowest first: a room includes itself and those before it. Files beside the rooms that are
# not named (doors, programs) stand above all of them.
rooms_of() {
  case $1 in
    planner/ir) REPLY='basics/ model/ machine/ schedule/ judge/ trace/ request/ result/' ;;
    planner/cost) REPLY='operators/ layers/ stages/ estimate/' ;;
    planner/io) REPLY='files/ tensors/ model/ cluster/ plan/ experiment/ results/ traces/' ;;
    planner/search) REPLY='problem.h price/ pool/ cuts/ bound/ proof/ orders/ joint/ steps/ search. choices/ reference/' ;;
    experiments) REPLY='machine/ inputs/ plans/ pfeife. measure/ show/ sweep/' ;;
    plots) REPLY='figure/ timeline/ screen/ report/' ;;
    runtime) REPLY='device/ model/ transport/ launch/ execute/ profile/ train/' ;;
  esac
}

# level FOLDER FILE: the number of the file's room in that folder.
level() {
  local room number=0
  rooms_of "$1"
  for room in $REPLY; do
    [[ $2 == "$1/$room"* ]] && REPLY=$number && return
    number=$((number + 1))
  done
  REPLY=99
}

# The folders whose headers a file may include, its own and those below it: a regular expression for what stands in quotes.
own_headers_of() {
  case $1 in
    planner/ir/*) REPLY='^"planner/ir/' ;;
    planner/io/*) REPLY='^"planner/(ir|io)/' ;;
    planner/schedules/*) REPLY='^"planner/(ir|schedules)/' ;;
    planner/cost/*) REPLY='^"planner/(ir|cost)/' ;;
    planner/mesh/*) REPLY='^"planner/(ir|schedules|cost|mesh)/' ;;
    planner/inputs/*) REPLY='^"planner/(ir|io|cost|mesh|inputs)/' ;;
    planner/search/*) REPLY='^"planner/(ir|schedules|cost|search)/' ;;
    planner/schedule_tool/*) REPLY='^"planner/(ir|io|cost|inputs|schedules|schedule_tool)/' ;;  # judges what the search says
    planner/pfeife_schedule.cc) REPLY='^"(planner|plots)/' ;;  # a main: it wires
    sim/*) REPLY='^"(sim|planner/ir|planner/io)/' ;;
    runtime/*) REPLY='^"(runtime|planner/ir|planner/io)/' ;;
    python/*) REPLY='^"nothing' ;;
    plots/*) REPLY='^"(plots|planner/ir)/' ;;
    experiments/*) REPLY='^"(planner|sim|plots|experiments)/' ;;
    *) REPLY='^"(planner|sim|plots|experiments|runtime|tests)/' ;;
  esac
}

# Where a third-party header may be: a regular expression for the file; empty for the standard library.
home_of() {
  case $1 in
    nlohmann/json_fwd.hpp) REPLY='^planner/io/|^tests/' ;;  # declares the type only; headers that readers share
    yaml-cpp/* | nlohmann/* | openssl/* | zip.h | zlib.h) REPLY='^planner/io/.*\.cc$|^tests/' ;;
    simgrid/* | xbt/* | xbt.h) REPLY='^sim/' ;;
    torch/* | ATen/* | c10/* | cuda* | nccl* | boost/asio* | boost/math/*) REPLY='^runtime/|^tests/(runtime|gpu)/' ;;
    boost/program_options*) REPLY='^planner/io/files/command_line\.h$|^experiments/(batch_|config_)?verbs\.cc$|main' ;;  # only sources of programs include that
    fmt/*) REPLY='^planner/io/|main|^experiments/' ;;
    nanobind/* | pfeife/pfeife.h) REPLY='^python/' ;;  # the module sees the library's door alone
    gtest/* | gmock/* | benchmark/* | coin/*) REPLY='^tests/' ;;
    unistd.h | sched.h | dlfcn.h | elf.h | link.h | fcntl.h | signal.h | malloc.h | sys/* | netdb.h | netinet/* | poll.h | spawn.h | immintrin.h) REPLY='^planner/io/|^planner/search/|^planner/cost/|^sim/|^runtime/|^experiments/|^tests/|main' ;;
    */* | *.h) REPLY='nowhere' ;;
    *) REPLY= ;;
  esac
}

breaches=0
breach() {
  printf '%s: %s\n' "$1" "$2"
  breaches=$((breaches + 1))
}

declare -A down up
# count ARRAY FILE HEADER: one more arrow from the file's folder, if the header is of another one.
count() {
  local -n counts=$1
  [[ ${2%/*} == "${3%/*}" ]] || counts[${2%/*}]=$((${counts[${2%/*}]:-0} + 1))
}

while IFS=: read -r file line header; do
  if [[ $header == \"* ]]; then
    header=${header//\"/}
    upward=
    own_headers_of "$file"
    [[ \"$header =~ $REPLY ]] || upward="may not include $header"
    for folder in planner/ir planner/cost planner/io planner/search plots experiments runtime; do
      [[ $file == "$folder"/* && $header == "$folder"/* ]] || continue
      level "$folder" "$file" && above=$REPLY
      level "$folder" "$header"
      ((REPLY <= above)) ||
        upward="may not include $header, which stands in a higher room"
    done
    if [[ -n $upward ]]; then
      breach "$file:$line" "$upward"
      count up "$file" "$header"
    else
      count down "$file" "$header"
    fi
    continue
  fi
  home_of "$header"
  home=$REPLY
  [[ -z $home || $file =~ $home ]] && continue
  [[ $home == *main* ]] && grep -qE '^int main\(' "$file" && continue
  breach "$file:$line" "may not include <$header>"
done < <(includes)

if ((arrows)); then
  for folder in $(printf '%s\n' "${!down[@]}" "${!up[@]}" | sort -u); do
    printf '%-28s %4d down %4d upward\n' "$folder" "${down[$folder]:-0}" "${up[$folder]:-0}"
  done
fi

# Files are named in lower case; types say what they are, which Manager, Helper and Util do not.
while read -r file; do breach "$file" "is not named in_lower_case"; done < <(
  find planner sim plots experiments runtime tests -name data -prune -o \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) -print 2>/dev/null |
    grep -vE '/[a-z0-9_]+\.[a-z]+$')
while IFS=: read -r file line name; do breach "$file:$line" "the name $name says nothing"; done < <(
  grep -rnoE --include='*.h' --include='*.cc' --include='*.cu' '\b(class|struct|enum class) [A-Za-z]*(Manager|Helper|Utils?)\b' \
    planner sim plots experiments runtime tests 2>/dev/null)

# A variable says what it holds, which these four words do not. The folders that keep to it so far.
empty_name='[A-Za-z0-9_>&*] (one|some|told|made)( =|[];{(,)[]| :)'
while IFS=: read -r file line code; do breach "$file:$line" "a variable is called one, some, told or made; name what it holds"; done < <(
  grep -rnE --include='*.h' --include='*.cc' "$empty_name" planner/{ir,schedules,cost,mesh,inputs,io,schedule_tool,search} \
    sim plots experiments runtime 2>/dev/null | sed -E 's@//.*@@; s/"([^"\\]|\\.)*"//g' | grep -E "$empty_name")

# Nor is a variable called "of" in the folders that keep to it so far.
named_of='[A-Za-z0-9_>&*] of( =|[];{(,)[]| :)'
while IFS=: read -r file line code; do breach "$file:$line" "a variable is called of; name what it holds"; done < <(
  grep -rnE --include='*.h' --include='*.cc' "$named_of" plots sim experiments/{inputs,machine,measure,show,sweep} \
    2>/dev/null | sed -E 's@//.*@@; s/"([^"\\]|\\.)*"//g' | grep -E "$named_of")

# The same for Python, with more words, for arguments, functions, classes and attributes, too; and a docstring begins with what it
# describes.
python_words='import ast, pathlib, sys
for folder in sys.argv[1:]:
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        strict, tests = folder.endswith("python"), folder == "tests/python"
        words = {"one", "some", "told", "of", *(() if tests else ("said", "made")), *(("other", "anew", "known") if strict else ())}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            line, name = getattr(node, "lineno", 1), None
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                name = node.id if isinstance(node, ast.Name) else node.attr if strict else None
            elif isinstance(node, ast.arg):
                name = node.arg
            elif strict and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                name = node.name
            if name in words or strict and file.stem in words:
                print(f"{file}:{line}:a variable is called {name or file.stem}; name what it holds")
            if not tests and isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                begin = (ast.get_docstring(node) or " ").split()[:1]
                if begin and begin[0] in {"Of", "As", "Likewise", "Those"}:
                    print(f"{file}:{line}:the docstring begins with {begin[0]}; begin with what is described")'
if command -v python3 >/dev/null; then
  while IFS=: read -r file line why; do breach "$file:$line" "$why"; done < <(
    python3 -c "$python_words" python tests/python configs experiments)
fi

# A type has a name of its own: two of one name in pfeife:: cannot be used together.
while read -r name files; do breach "${files// /, }" "each has a type $name; give one of them another name"; done < <(
  grep -rnoE --include='*.h' '^(struct|class|enum class) [A-Z][A-Za-z0-9]+( final)?( :|:| \{)' \
    planner sim plots experiments runtime 2>/dev/null |
    awk -F: '{split($3, words, " "); name = words[1] == "enum" ? words[3] : words[2]; sub(/:$/, "", name); at[name] = at[name] " " $1; n[name]++}
      END {for (name in n) if (n[name] > 1) print name at[name]}' |
    while read -r name files; do  # those of a namespace below pfeife have its name before theirs
      kept=$({ grep -LE '^namespace pfeife::' $files || true; } | tr '\n' ' ')
      (($(wc -w <<<"$kept") > 1)) && printf '%s %s\n' "$name" "${kept% }"
    done | sort)

# A comment begins with what it describes.
while IFS=: read -r file line word; do breach "$file:$line" "the comment begins with \"${word##*[ /<]}\"; begin with what is described"; done < <(
  grep -rnoE --include='*.h' --include='*.cc' --include='*.cu' '(^|[[:space:]])//[/!]?<?[[:space:]]*(Of|Likewise|Those)\b' \
    planner sim plots experiments runtime tests 2>/dev/null)

# What a tensor describes and what its memory holds differ: one file gives bytes out.
while IFS=: read -r file line _; do
  [[ $file == runtime/device/tensor_bytes.cc ]] ||
    breach "$file:$line" "reads a tensor's memory; stored_bytes() of runtime/device/tensor_bytes.h does that"
done < <(grep -rnE --include='*.h' --include='*.cc' '(\.|->)(const_)?data_ptr\(\)' runtime 2>/dev/null | grep -v 'storage()\.data_ptr()')

# What planning came to is written by the pool alone.
answer_written='\b(answer|outcome)_?(\.|->)(plans|all|front|rejected|infeasible|bound|covered|uncertified|certificate|history|candidates|effort|seconds)((\.|->)[a-z_]+)? *([-+|&]?=[^=]|\.(push_back|emplace|insert|clear|resize|reset|erase)\()'
while IFS=: read -r file line _; do
  [[ $file == planner/search/pool/* ]] || breach "$file:$line" "writes an Answer; planner/search/pool does that"
done < <(grep -rnE --include='*.h' --include='*.cc' "$answer_written" planner/search experiments 2>/dev/null)

# What must be trusted stays short enough to be read: the table of planner/schedule_tool/README.md.
judges=planner/schedule_tool/README.md
while read -r file most; do
  lines=$(wc -l <"${judges%/*}/$file")
  ((lines <= most)) || breach "${judges%/*}/$file" "has $lines lines, and may have $most by $judges"
done < <([[ ! -e $judges ]] || sed -nE 's/^\| `([a-z_]+\.cc)` \| ([0-9]+) \|.*/\1 \2/p' "$judges")

if ((breaches > 0)); then
  echo "$breaches breaches of the rules of README.md, \"Who may include whom\", or of $judges." >&2
  exit 1
fi
