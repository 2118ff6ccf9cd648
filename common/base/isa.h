// Instruction-set levels of the compiled kernels, and the detection of this machine's level.
//
// Kernel sources are compiled once per level (cmake/isa.cmake), each time into a namespace of its
// own: kumo::isa_baseline, isa_v3 and isa_v4. The owner of a kernel declares it with
// KUMO_DECLARE_PER_ISA and selects one with KUMO_AT_ISA(DetectIsa(), ...). All levels compute the
// same bits, except kernels of layers (models/backend/cpu/elementwise_kernel.h).
//
// A kernel source includes only <cstddef>, <cstdint> and kernel headers whose definitions all lie
// in namespace KUMO_ISA: otherwise the linker could keep a standard inline function compiled for
// AVX-512 for the whole program.
#pragma once

namespace kumo {

enum class Isa { kBaseline, kV3, kV4 };

// The best level of this machine (x86-64-v3: AVX2, FMA and F16C; v4: AVX-512 F, BW, CD, DQ, VL).
inline Isa DetectIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#if defined(__clang__)
  const bool f16c = true;  // Clang 14 cannot ask; every processor with AVX2 has it
#else
  const bool f16c = __builtin_cpu_supports("f16c");
#endif
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return Isa::kV4;
  }
  if (v3) return Isa::kV3;
#endif
  return Isa::kBaseline;
}

}  // namespace kumo

// Declares `extern TYPE NAME;` for each level. Use it in namespace kumo.
#define KUMO_DECLARE_PER_ISA(type, name) \
  namespace isa_baseline {               \
  extern type name;                      \
  }                                      \
  namespace isa_v3 {                     \
  extern type name;                      \
  }                                      \
  namespace isa_v4 {                     \
  extern type name;                      \
  }

// Selects the object `name` of level `isa`. Use it in namespace kumo.
#if defined(__x86_64__)
#define KUMO_AT_ISA(isa, name)                \
  ((isa) == ::kumo::Isa::kV4   ? isa_v4::name \
   : (isa) == ::kumo::Isa::kV3 ? isa_v3::name \
                               : isa_baseline::name)
#else
#define KUMO_AT_ISA(isa, name) ((void)(isa), isa_baseline::name)
#endif
