# What cmake --install puts down for programs of others: the library, the headers that pfeife.h leads to, and how CMake and
# pkg-config find them; and what users of the programs start from.
include(CMakePackageConfigHelpers)
set(libraries pfeife pfeife_search pfeife_schedule_tool pfeife_inputs pfeife_mesh pfeife_io pfeife_cost pfeife_schedules pfeife_sim
  pfeife_plots pfeife_ir)
install(TARGETS ${libraries} pfeife_flags EXPORT pfeife ARCHIVE DESTINATION lib)
set(config_folder lib/cmake/pfeife)
install(EXPORT pfeife FILE pfeifeTargets.cmake NAMESPACE pfeife:: DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pfeifeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/pfeifeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/pfeifeConfigVersion.cmake DESTINATION ${config_folder})

string(REPLACE ";" " -l" pkg_config_libraries "-l${libraries}")
configure_file(cmake/pfeife.pc.in ${CMAKE_CURRENT_BINARY_DIR}/pfeife.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pfeife.pc DESTINATION lib/pkgconfig)

# pfeife.h, the table of schedule families, and the headers that they lead to, below include/pfeife as they include one another.
set(pending experiments/pfeife.h planner/schedules/families.h)
set(headers)
while(pending)
  list(POP_FRONT pending header)
  list(APPEND headers ${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT included IN_LIST headers AND NOT included IN_LIST pending)
      list(APPEND pending ${included})
    endif()
  endforeach()
endwhile()
foreach(header IN LISTS headers)
  get_filename_component(room ${header} DIRECTORY)
  string(REGEX REPLACE "^experiments$" "." room ${room})
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION include/pfeife/${room})
endforeach()
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION share/pfeife/configs PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION share/doc/pfeife)

# `ninja api`: the reference of these headers, experiments/api/html in the build folder; a warning is an error.
find_package(Doxygen QUIET)
if(DOXYGEN_FOUND)
  set(DOXYGEN_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/api)
  set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR})
  set(DOXYGEN_EXTRACT_ALL YES)  # what needs no words has a name that says it
  set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)

  set(DOXYGEN_HAVE_DOT NO)
  set(DOXYGEN_QUIET YES)
  set(DOXYGEN_GENERATE_LATEX NO)
  doxygen_add_docs(api ${headers})
endif()
