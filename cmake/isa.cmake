# kumo_add_kernels(TARGET SOURCE ...): compiles each SOURCE once per instruction-set level, with
# KUMO_ISA naming the level (baseline, v3, v4), so that one binary runs on any x86-64 machine and
# still uses AVX2 or AVX-512 where there is one. A kernel source puts all it defines into
# namespace KUMO_ISA; common/base/isa.h picks the level at run time. Elsewhere than on x86-64 only
# `baseline` exists.
function(kumo_add_kernels target)
  set(levels baseline)
  set(flags_baseline "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(levels baseline v3 v4)
    set(flags_baseline -march=x86-64-v2)
    set(flags_v3 -march=x86-64-v3)
    set(flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
  endif()
  foreach(level IN LISTS levels)
    add_library(${target}_${level} OBJECT ${ARGN})
    target_compile_definitions(${target}_${level} PRIVATE KUMO_ISA=isa_${level})
    # Nobody reads floating-point exception flags. With them, a loop with `x < top ? x : top` is not
    # vectorised below AVX-512.
    target_compile_options(${target}_${level} PRIVATE ${flags_${level}} -O3 -fno-trapping-math -Wno-psabi
                           # A sanitizer's checks keep loops from being vectorised.
                           $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
    target_include_directories(${target}_${level} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${level}>)
  endforeach()
endfunction()
