# The installed library, and what it needs besides: find_package(pfeife), then link pfeife::pfeife.
include(CMakeFindDependencyMacro)
find_dependency(yaml-cpp)
find_dependency(nlohmann_json)
find_dependency(OpenSSL COMPONENTS Crypto)
find_dependency(ZLIB)
find_dependency(PkgConfig)
if(NOT TARGET PkgConfig::LIBZIP)
  pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/pfeifeTargets.cmake)
# The simulation server is looked for there, too (sim/server).
get_filename_component(pfeife_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
target_link_options(pfeife::pfeife INTERFACE "-Wl,-rpath,${pfeife_prefix}/lib/pfeife")
