#include "models/ops/convolution/cpu_zero_windows.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "models/backend/cpu/layout.h"

namespace kumo::cpu {
namespace {

constexpr int64_t kKernel = 3;
// Floats of a channel that are read together. After some channels usually each of them has had a
// number that is not zero, and the others need not be read.
constexpr int64_t kMarkedAtOnce = 256;
constexpr int64_t kChannelsBetweenChecks = 4;

// sizes[i] |= the bits of x[i] but its sign: 0 of zeros alone.
void AddSizes(const float* x, int64_t n, uint32_t* sizes) {
  constexpr uint32_t kNoSign = 0x7fffffff;
  if (n == kMarkedAtOnce) {  // a number that the compiler knows, so that it takes whole vectors
    for (int64_t i = 0; i < kMarkedAtOnce; ++i) sizes[i] |= std::bit_cast<uint32_t>(x[i]) & kNoSign;
  } else {
    for (int64_t i = 0; i < n; ++i) sizes[i] |= std::bit_cast<uint32_t>(x[i]) & kNoSign;
  }
}

bool HasZero(const uint32_t (&sizes)[kMarkedAtOnce]) {
  uint32_t zeros = 0;
  for (const uint32_t size : sizes) zeros += size == 0 ? 1 : 0;
  return zeros != 0;
}

// Marks in the scratch, and a row of windows for each thread.
int64_t MarkFloats(const Shape& source, int64_t lanes) {
  return source.plane() * lanes / static_cast<int64_t>(sizeof(float)) + kSampleLanes;
}
int64_t RowFloats(const Shape& result, int64_t lanes) {
  return result.width() * lanes / static_cast<int64_t>(sizeof(float)) + kSampleLanes;
}

}  // namespace

ZeroWindows::ZeroWindows(Engine& engine, const Shape& result, const Shape& source, int pad,
                         int max_batch)
    : engine_(engine), result_(result), source_(source), pad_(pad) {
  const int64_t lanes = WholeLanes(max_batch);
  unused_.reserve(lanes + kMarkedAtOnce);
  engine.ReserveScratch(MarkFloats(source, lanes) + engine.threads() * RowFloats(result, lanes));
}

bool ZeroWindows::Mark(const float* source, int64_t floats) {
  const int64_t lanes = floats / source_.plane();
  std::atomic<bool> found{false};
  engine_.Parallel((floats + kMarkedAtOnce - 1) / kMarkedAtOnce, [&](int64_t piece) {
    const int64_t begin = piece * kMarkedAtOnce;
    const int64_t n = std::min(kMarkedAtOnce, floats - begin);
    uint32_t sizes[kMarkedAtOnce];
    std::memcpy(sizes, unused_.data() + begin % lanes, sizeof(sizes));
    for (int64_t i = n; i < kMarkedAtOnce; ++i) sizes[i] = 1;
    for (int64_t c = 0; c < source_.channels(); ++c) {
      if (c > 0 && c % kChannelsBetweenChecks == 0 && !HasZero(sizes)) break;
      AddSizes(source + c * floats + begin, n, sizes);
    }
    for (int64_t i = 0; i < n; ++i) marks_[begin + i] = sizes[i] == 0 ? 1 : 0;
    if (HasZero(sizes)) found = true;
  });
  return found;
}

bool ZeroWindows::MarkRow(int64_t row, int64_t lanes, uint8_t* windows) const {
  const int64_t floats = result_.width() * lanes;
  std::fill_n(windows, floats, uint8_t{1});
  bool found = true;
  for (int64_t i = 0; i < kKernel && found; ++i) {
    const int64_t from = row + i - pad_;
    if (from < 0 || from >= source_.height()) continue;
    const uint8_t* const marks = marks_ + from * source_.width() * lanes;
    for (int64_t j = 0; j < kKernel; ++j) {
      // Results whose tap j is inside the source.
      const int64_t shift = j - pad_;
      const int64_t begin = std::max<int64_t>(0, -shift) * lanes;
      const int64_t end = std::min(result_.width(), source_.width() - shift) * lanes;
      for (int64_t x = begin; x < end; ++x) windows[x] &= marks[x + shift * lanes];
    }
    found = std::memchr(windows, 1, floats) != nullptr;
  }
  return found;
}

void ZeroWindows::SetToBias(int batch, const float* source, const float* bias, float* result) {
  float* const scratch = engine_.Scratch();
  if (scratch == nullptr) return;
  const int64_t lanes = engine_.Lanes(batch);
  marks_ = reinterpret_cast<uint8_t*>(scratch);
  unused_.resize(lanes + kMarkedAtOnce);
  for (int64_t i = 0; i < std::ssize(unused_); ++i) unused_[i] = i % lanes < batch ? 0 : 1;
  if (!Mark(source, source_.plane() * lanes)) return;
  float* const rows = scratch + MarkFloats(source_, lanes);
  const int64_t threads = engine_.threads();
  engine_.Parallel(threads, [&](int64_t thread) {
    auto* const windows = reinterpret_cast<uint8_t*>(rows + thread * RowFloats(result_, lanes));
    for (int64_t row = thread; row < result_.height(); row += threads) {
      if (!MarkRow(row, lanes, windows)) continue;
      for (int64_t c = 0; c < result_.channels(); ++c) {
        const float at_zeros = bias == nullptr ? 0.0f : bias[c];
        float* const to = result + (c * result_.height() + row) * result_.width() * lanes;
        for (int64_t x = 0; x < result_.width() * lanes; ++x) {
          to[x] = windows[x] != 0 ? at_zeros : to[x];
        }
      }
    }
  });
}

}  // namespace kumo::cpu
