# kumo_precompile(TARGET ...): the sources of these targets start from cmake/precompiled.h, which is
# compiled once. Not for kernels, which include next to nothing (cmake/isa.cmake).
#
# Named in angle brackets, so that no path of this folder gets into what ccache compares.
# Clang writes the time into a precompiled header, so that ccache would know none again; as it is, it
# knows those of the same folder.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

function(kumo_add_precompiled target)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE kumo_proto PkgConfig::GLOG Threads::Threads)
  target_precompile_headers(${target} PRIVATE <cmake/precompiled.h>)
endfunction()

kumo_add_precompiled(kumo_precompiled)
# See kumo_precompile_cold.
if(KUMO_SANITIZE MATCHES "address|thread")
  kumo_add_precompiled(kumo_precompiled_cold)
  target_compile_options(kumo_precompiled_cold PRIVATE -O0)
endif()

# What GCC's optimiser wrongly finds inside std::string and std::vector it forgives where it knows
# them for system headers; in a precompiled header it does not.
set(KUMO_PRECOMPILED_OPTIONS
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)

# Where there are fuzzers, these sources count which of their branches were taken. Kernels do not:
# they have no branches to speak of, and their time would go into the counting.
if(KUMO_FUZZ)
  set(KUMO_COVERAGE_OPTIONS -fsanitize=fuzzer-no-link)
  target_compile_options(kumo_precompiled PRIVATE ${KUMO_COVERAGE_OPTIONS})
  if(TARGET kumo_precompiled_cold)
    target_compile_options(kumo_precompiled_cold PRIVATE ${KUMO_COVERAGE_OPTIONS})
  endif()
endif()

function(kumo_precompile)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM kumo_precompiled)
    target_compile_options(${target} PRIVATE "${KUMO_PRECOMPILED_OPTIONS}"
                           ${KUMO_COVERAGE_OPTIONS})
  endforeach()
endfunction()

# kumo_precompile_cold(TARGET ...): likewise, for targets in which tests spend little time and that no fuzzer
# looks for. For the address and the thread sanitizer these are compiled without optimisation, in a third of
# the time.
function(kumo_precompile_cold)
  if(NOT TARGET kumo_precompiled_cold)
    kumo_precompile(${ARGN})
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM kumo_precompiled_cold)
    target_compile_options(${target} PRIVATE -O0 ${KUMO_COVERAGE_OPTIONS})
  endforeach()
endfunction()

# kumo_optimise_less(TARGET ...): GCC compiles these targets with -O1, which takes it a fifth less time. For
# targets whose code runs once in a process or once in a second: settings, commands, formats.
function(kumo_optimise_less)
  if(KUMO_SANITIZE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(
      ${target} PRIVATE $<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-O1>)
  endforeach()
endfunction()
