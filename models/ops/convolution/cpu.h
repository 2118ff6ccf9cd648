// Ways to convolve on the CPU: each is an op in a file of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/job/parameter_layout.h"
#include "models/backend/cpu/cpu_engine.h"
#include "models/backend/op.h"
#include "models/ops/convolution/spec.h"

namespace kumo::cpu {

// cpu_plain.cc, cpu_grouped.cc, cpu_gathered.cc, cpu_winograd.cc. Only the plain way pools.
enum class ConvolutionWay { kPlain, kGrouped, kGathered, kMinimal };
// The way that a spec asks for; minibatches of few samples may go another way (cpu.cc).
ConvolutionWay WayOf(const ConvolutionSpec& spec);
std::unique_ptr<Op> MakePlainConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                         int max_batch);
std::unique_ptr<Op> MakeGroupedConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                           int max_batch);
std::unique_ptr<Op> MakeGatheredConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                            int max_batch);
bool PaysByWinograd(const ConvolutionSpec& spec, int batch, int64_t lanes);
std::unique_ptr<Op> MakeWinogradConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                            int max_batch);

// The op of a spec by the ways above.
std::unique_ptr<Op> MakeConvolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch);

// [0, n) as the fewest pieces of at most `most`, as even as they can be.
std::vector<Range> EvenPieces(int64_t n, int64_t most);

}  // namespace kumo::cpu
