# kumo_precompile(TARGET ...): the sources of these targets start from cmake/precompiled.h, which is
# compiled once. Not for kernels, which include next to nothing (cmake/isa.cmake).
#
# Named in angle brackets, so that no path of this folder gets into what ccache compares.
# Clang writes the time into a precompiled header, so that ccache would know none again; as it is, it
# knows those of the same folder.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

add_library(kumo_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
target_include_directories(kumo_precompiled PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(kumo_precompiled PRIVATE kumo_proto PkgConfig::GLOG Threads::Threads)
target_precompile_headers(kumo_precompiled PRIVATE <cmake/precompiled.h>)

# What GCC's optimiser wrongly finds inside std::string and std::vector it forgives where it knows
# them for system headers; in a precompiled header it does not.
set(KUMO_PRECOMPILED_OPTIONS
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)

# Where there are fuzzers, these sources count which of their branches were taken. Kernels do not:
# they have no branches to speak of, and their time would go into the counting.
if(KUMO_FUZZ)
  set(KUMO_COVERAGE_OPTIONS -fsanitize=fuzzer-no-link)
  target_compile_options(kumo_precompiled PRIVATE ${KUMO_COVERAGE_OPTIONS})
endif()

function(kumo_precompile)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM kumo_precompiled)
    target_compile_options(${target} PRIVATE "${KUMO_PRECOMPILED_OPTIONS}"
                           ${KUMO_COVERAGE_OPTIONS})
  endforeach()
endfunction()
