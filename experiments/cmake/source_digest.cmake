# Writes OUT: SHA-256 of what decides a plan and of what decides a measurement, over names and bytes of the sources
# below ROOT. Usage: cmake -DROOT=... -DOUT=... -P source_digest.cmake
function(digest_of name)
  set(text "")
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.cc ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cu)
    list(SORT files)
    foreach(file IN LISTS files)
      file(SHA256 ${ROOT}/${file} one)
      string(APPEND text "${file} ${one}\n")
    endforeach()
  endforeach()
  string(SHA256 digest "${text}")
  set(${name} ${digest} PARENT_SCOPE)
endfunction()

# What only draws, judges or shows is left out.
digest_of(planning planner/ir planner/io planner/cost planner/inputs planner/schedules planner/search sim
  experiments/inputs experiments/plans experiments/measure experiments/sweep)
digest_of(runtime runtime)
file(WRITE ${OUT}.new "#include \"experiments/inputs/inputs.h\"
namespace pfeife {
const char* planning_sources() { return \"${planning}\"; }
const char* runtime_sources() { return \"${runtime}\"; }
}  // namespace pfeife
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
