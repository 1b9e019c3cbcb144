# LibTorch without its own CMake package: that one asks for nvcc even where only the CPU is used, and always links the
# CUDA libraries. Looks in LIBTORCH_ROOT, then for the Python package `torch` of LibTorch_PYTHON.
# Defines LibTorch::cpu. LibTorch's library for CUDA is loaded by programs that are asked for a card (runtime/device/device.h), not linked:
# LibTorch_CUDA_MISSING says why it cannot be, "" if it can.
set(LibTorch_ROOT "$ENV{LIBTORCH_ROOT}" CACHE PATH "LibTorch's folder; empty: the torch package of python3")
find_program(LibTorch_PYTHON NAMES python3)
set(_libtorch_root "${LibTorch_ROOT}")
if(NOT _libtorch_root AND EXISTS "${PROJECT_SOURCE_DIR}/build/venv/bin/python3")
  set(_libtorch_pythons "${PROJECT_SOURCE_DIR}/build/venv/bin/python3" "${LibTorch_PYTHON}")
else()
  set(_libtorch_pythons "${LibTorch_PYTHON}")
endif()
foreach(_python ${_libtorch_pythons})
  if(NOT _libtorch_root AND _python) # find_spec does not import torch
    execute_process(COMMAND ${_python} -c
      "import importlib.util as u; s=u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
      OUTPUT_VARIABLE _libtorch_root ERROR_QUIET)
  endif()
endforeach()

find_path(LibTorch_INCLUDE_DIR torch/library.h HINTS "${_libtorch_root}/include" NO_DEFAULT_PATH)
foreach(_l c10 torch_cpu torch_cuda)
  find_library(LibTorch_${_l} ${_l} HINTS "${_libtorch_root}/lib" NO_DEFAULT_PATH)
endforeach()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch DEFAULT_MSG LibTorch_torch_cpu LibTorch_c10 LibTorch_INCLUDE_DIR)

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  get_filename_component(_lib "${LibTorch_torch_cpu}" DIRECTORY)
  file(GLOB _dirs "${_lib}/../../nvidia/*/lib")
  find_library(LibTorch_cudart NAMES libcudart.so.13 HINTS ${_dirs} ENV CUDA_HOME PATHS /usr/local/cuda
    PATH_SUFFIXES lib64 lib)
  get_filename_component(_cudart_dir "${LibTorch_cudart}" DIRECTORY)
  # DT_RPATH serves the needs of LibTorch's own libraries too, DT_RUNPATH does not.
  set(_options LINKER:--disable-new-dtags)
  foreach(_d "${_lib}" ${_dirs} ${_cudart_dir})
    # Not into a program that runs on another machine (tests/gpu/CMakeLists.txt): LibTorch is elsewhere there.
    list(APPEND _options "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:PFEIFE_BUNDLED>>>:LINKER:-rpath,${_d}>" "LINKER:-rpath-link,${_d}")
  endforeach()
  find_package(Threads REQUIRED)
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    "${LibTorch_INCLUDE_DIR}" "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  target_compile_features(LibTorch::cpu INTERFACE cxx_std_20)
  target_compile_definitions(LibTorch::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_options(LibTorch::cpu INTERFACE ${_options})
  target_link_libraries(LibTorch::cpu INTERFACE "${LibTorch_torch_cpu}" "${LibTorch_c10}" Threads::Threads)
  set(LibTorch_CUDA_MISSING "this LibTorch has no libtorch_cuda.so")
  if(LibTorch_torch_cuda)
    execute_process(COMMAND ldd "${LibTorch_torch_cuda}" OUTPUT_VARIABLE _needs ERROR_QUIET)
    string(REGEX MATCHALL "[^ \t\n]+ => not found" LibTorch_CUDA_MISSING "${_needs}")
    string(REPLACE " => not found" "" LibTorch_CUDA_MISSING "${LibTorch_CUDA_MISSING}")
    string(REPLACE ";" ", " LibTorch_CUDA_MISSING "${LibTorch_CUDA_MISSING}")
    if(LibTorch_CUDA_MISSING)
      set(LibTorch_CUDA_MISSING "libtorch_cuda.so needs ${LibTorch_CUDA_MISSING}: pip install torch==2.11.0 without --no-deps")
    endif()
  endif()
endif()
