// Code of a group of 4,096 numbers. Its k = 64 largest |u| are sent (u = x plus the residual):
//
//   64 bytes   positions, ascending: the low 6 bits of position j in byte j, the high bits in
//              unary in the upper 2 bits of the bytes (topk2bit_formula.h)
//   16 bytes   codes, 2 bits each
//   levels     4 float32: in front of each group, or, for a codec of tensors, behind all groups,
//              for each tensor's piece of the chunk
//
// The last group may be shorter: k = ceil(count / 64).
//
// Levels of the sent numbers v of one tensor (or of one group), in three passes: the mean m; the
// step 6 sigma / 4 from the sum of (v - m)^2; the codes clamp(round((v - m) / step + 2), 0, 3) with
// the mean of each code's numbers as its level. A tensor may lie in several chunks, so Quantise
// makes each pass over all chunks before the next pass. Sums are in double, run by run, in the
// order of the flat vector: the same bits everywhere.
//
// The residual becomes u for numbers that are not sent, and v - level for numbers that are.
//
// Decoding takes any bytes: Check refuses positions that do not ascend, and readers skip them.
#include "common/codec/topk2bit_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <glog/logging.h>

#define KUMO_ISA on_host
#define KUMO_FORMULA inline
namespace kumo::KUMO_ISA {
KUMO_FORMULA double RootOf(double x) { return std::sqrt(x); }
}  // namespace kumo::KUMO_ISA
#include "common/codec/topk2bit_formula.h"
#undef KUMO_FORMULA
#undef KUMO_ISA

namespace kumo {
namespace {

using Formula = on_host::Topk2bitFormula;

constexpr size_t kGroupCode = 80;  // bytes of a full group's positions and codes

// The 2 high bits of 8 bytes side by side.
uint64_t HighBits(uint64_t bytes) {
  bytes = (bytes >> 6) & 0x0303030303030303u;
  bytes = (bytes | bytes >> 6) & 0x000f000f000f000fu;
  bytes = (bytes | bytes >> 12) & 0x000000ff000000ffu;
  return (bytes | bytes >> 24) & 0xffffu;
}
// The inverse: bytes whose low bits are 0.
uint64_t SpreadBits(uint64_t bits) {
  bits = (bits | bits << 24) & 0x000000ff000000ffu;
  bits = (bits | bits << 12) & 0x000f000f000f000fu;
  bits = (bits | bits << 6) & 0x0303030303030303u;
  return bits << 6;
}

void PutPositions(const uint16_t* positions, size_t kept, std::byte* out) {
  std::array<uint64_t, Formula::kMostKept / 8> bytes{};
  std::array<uint64_t, 2> ones{};
  for (size_t j = 0; j < kept; ++j) {
    const size_t bit = Formula::HighBit(j, positions[j]);
    ones[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  for (size_t j = 0; j < kept; ++j) {
    out[j] = std::byte{Formula::LowBits(positions[j])};
  }
  std::memcpy(bytes.data(), out, kept);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] |= SpreadBits(static_cast<uint16_t>(ones[i / 4] >> (i % 4 * 16)));
  }
  std::memcpy(out, bytes.data(), kept);
}

void PutCodes(const uint8_t* codes, size_t kept, std::byte* out) {
  std::fill_n(out, Formula::GroupBytes(kept) - kept, std::byte{0});
  for (size_t j = 0; j < kept; ++j) out[j / 4] |= static_cast<std::byte>(codes[j] << (j % 4 * 2));
}

// Reader of a group's positions, from any bytes: up to `kept`, in no certain order.
class PositionReader {
 public:
  PositionReader(const std::byte* positions, size_t kept) : positions_(positions), kept_(kept) {
    std::array<uint64_t, Formula::kMostKept / 8> bytes{};
    std::memcpy(bytes.data(), positions, kept);
    for (size_t i = 0; i < bytes.size(); ++i) ones_[i / 4] |= HighBits(bytes[i]) << (i % 4 * 16);
  }

  // The next position, or -1 if there is none.
  int64_t Next() {
    if (read_ == kept_) return -1;
    if (ones_[word_] == 0) {
      if (word_ == 1 || ones_[1] == 0) return -1;
      word_ = 1;
    }
    const auto bit = 64 * word_ + static_cast<size_t>(std::countr_zero(ones_[word_]));
    ones_[word_] &= ones_[word_] - 1;
    return static_cast<int64_t>(Formula::PositionAt(positions_, bit, read_++));
  }
  size_t read() const { return read_; }

 private:
  const std::byte* const positions_;
  const size_t kept_;
  std::array<uint64_t, 2> ones_{};  // the high bits
  size_t word_ = 0;
  size_t read_ = 0;
};

// Numbers of a group that were sent, as its bytes say.
struct SentOfGroup {
  size_t count = 0;
  std::array<uint16_t, Formula::kMostKept> positions;  // ascending
  std::array<uint8_t, Formula::kMostKept> codes;

  // Reads any bytes. Positions that do not ascend are left out, so that any bytes mean the same
  // numbers everywhere.
  void Read(const std::byte* code, size_t kept, size_t of_group) {
    PositionReader reader(code, kept);
    const std::byte* const codes_of_group = code + kept;
    int64_t before = -1;
    count = 0;
    for (int64_t position; (position = reader.Next()) >= 0;) {
      if (position <= before || position >= static_cast<int64_t>(of_group)) continue;
      before = position;
      positions[count] = static_cast<uint16_t>(position);
      codes[count++] = static_cast<uint8_t>(Formula::CodeAt(codes_of_group, reader.read() - 1));
    }
  }
};

// Statistics of the sent numbers of one tensor, in three passes over them. Sums are of each group's
// numbers, then of groups.
struct Statistics {
  int64_t count = 0;
  double sum = 0.0;
  double mean = 0.0;
  double squares = 0.0;
  double step = 0.0;
  std::array<double, Formula::kLevels> sums{};
  std::array<int64_t, Formula::kLevels> counts{};
  std::array<float, Formula::kLevels> levels{};

  void AddTo(double* total, std::span<const float> values, auto term) const {
    double of_group = 0.0;
    for (const float v : values) of_group += term(static_cast<double>(v));
    *total += of_group;
  }
  void AddValues(std::span<const float> values) {
    AddTo(&sum, values, [](double v) { return v; });
    count += static_cast<int64_t>(values.size());
  }
  void SetMean() { mean = Formula::MeanOf(sum, count); }
  void AddSquares(std::span<const float> values) {
    AddTo(&squares, values, [this](double v) { return (v - mean) * (v - mean); });
  }
  void SetStep() { step = Formula::StepOf(squares, count); }
  void AddCodes(const Topk2bitKernel& kernel, std::span<const float> values, uint8_t* codes) {
    kernel.code(values.data(), values.size(), mean, step, codes);
    kernel.add(values.data(), codes, values.size(), sums.data(), counts.data());
  }
  void SetLevels() {
    for (int c = 0; c < Formula::kLevels; ++c) {
      levels[c] = static_cast<float>(Formula::MeanOf(sums[c], counts[c]));
    }
  }
};

// Sent numbers of one tensor in one group.
struct Run {
  size_t statistics;  // index
  float* residual;    // of the group
  std::span<const uint16_t> positions;
  std::span<const float> values;
  uint8_t* codes;
};

}  // namespace

float Topk2bitCodec::largest() const { return std::numeric_limits<float>::max(); }

size_t Topk2bitCodec::GroupAt(size_t group) const {
  const size_t levels = pieces_.empty() ? Formula::kLevelBytes : 0;
  return group * (kGroupCode + levels) + levels;
}

size_t Topk2bitCodec::LevelsAt(size_t piece, size_t n) const {
  if (pieces_.empty()) return GroupAt(piece) - Formula::kLevelBytes;
  return EncodedBytes(n) - (pieces_.size() - piece) * Formula::kLevelBytes;
}

size_t Topk2bitCodec::PieceOf(size_t number) const {
  if (pieces_.empty()) return number / kTopkGroup;
  const auto next =
      std::upper_bound(pieces_.begin(), pieces_.end(), number,
                       [](size_t at, const TensorPiece& piece) { return at < piece.begin; });
  return static_cast<size_t>(next - pieces_.begin()) - 1;
}

size_t Topk2bitCodec::EndOf(size_t piece, size_t n) const {
  if (pieces_.empty()) return std::min(n, (piece + 1) * kTopkGroup);
  return piece + 1 < pieces_.size() ? pieces_[piece + 1].begin : n;
}

size_t Topk2bitCodec::EncodedBytes(size_t n) const {
  CHECK(pieces_.empty() || n == n_) << "a chunk of " << n << " numbers instead of " << n_;
  const size_t groups = n / kTopkGroup;
  const size_t rest = n % kTopkGroup;
  const size_t rest_code = rest == 0 ? 0 : Formula::GroupBytes(Formula::Kept(rest));
  const size_t levels = pieces_.empty() ? groups + (rest == 0 ? 0 : 1) : pieces_.size();
  return groups * kGroupCode + rest_code + levels * Formula::kLevelBytes;
}

std::unique_ptr<const Codec> Topk2bitCodec::ForTensors(std::vector<TensorPiece> pieces,
                                                       size_t n) const {
  CHECK(!pieces.empty() && pieces.front().begin == 0 && pieces.back().begin < n);
  return std::unique_ptr<const Codec>(new Topk2bitCodec(kernels_, settings_, std::move(pieces), n));
}

// residual <- u; positions and values of what is sent, and the positions' bytes. Without a residual
// there is no `minus`.
int64_t Topk2bitCodec::SelectGroup(const EncodeContext& context, const float* x, const float* minus,
                                   float* residual, size_t count, std::byte* out, uint32_t* guess,
                                   uint16_t* positions, float* values) const {
  alignas(64) std::array<float, kTopkGroup> sums;
  const float* u = x;
  uint32_t top;
  if (residual != nullptr) {
    top = kernels_.select.add(x, minus, residual, settings_.residual_factor, count, sums.data());
    u = sums.data();
  } else {
    top = kernels_.select.largest(x, count);
  }
  if (top > std::bit_cast<uint32_t>(context.most)) {
    return std::find_if(u, u + count,
                        [&context](float v) { return !(std::fabs(v) <= context.most); }) -
           u;
  }
  const size_t kept = Formula::Kept(count);
  kernels_.select.select(u, count, kept, top, guess, positions);
  PutPositions(positions, kept, out);
  for (size_t j = 0; j < kept; ++j) values[j] = u[positions[j]];
  return -1;
}

// Levels of each group.
int64_t Topk2bitCodec::EncodeGroups(const EncodeContext& context, std::span<const float> x,
                                    std::span<float> residual, std::span<std::byte> out) const {
  std::array<uint16_t, Formula::kMostKept> positions;
  std::array<float, Formula::kMostKept> values;
  std::array<uint8_t, Formula::kMostKept> codes;
  uint32_t guess = 0;
  for (size_t begin = 0; begin < x.size(); begin += kTopkGroup) {
    const size_t group = begin / kTopkGroup;
    const size_t count = std::min(kTopkGroup, x.size() - begin);
    float* const rest = residual.empty() ? nullptr : residual.data() + begin;
    std::byte* const code = out.data() + GroupAt(group);
    const int64_t bad = SelectGroup(context, x.data() + begin, nullptr, rest, count, code, &guess,
                                    positions.data(), values.data());
    if (bad >= 0) return static_cast<int64_t>(begin) + bad;
    const size_t kept = Formula::Kept(count);
    const std::span<const float> sent(values.data(), kept);
    Statistics statistics;
    statistics.AddValues(sent);
    statistics.SetMean();
    statistics.AddSquares(sent);
    statistics.SetStep();
    statistics.AddCodes(kernels_.quantise, sent, codes.data());
    PutCodes(codes.data(), kept, code + kept);
    statistics.SetLevels();
    std::memcpy(out.data() + LevelsAt(group, x.size()), statistics.levels.data(),
                Formula::kLevelBytes);
    for (size_t j = 0; j < kept && rest != nullptr; ++j) {
      rest[positions[j]] = values[j] - statistics.levels[codes[j]];
    }
  }
  return -1;
}

int64_t Topk2bitCodec::EncodeIn(const EncodeContext& context, std::span<const float> x,
                                std::span<float> residual, std::span<std::byte> out) const {
  CHECK_EQ(out.size(), EncodedBytes(x.size()));
  CHECK(residual.empty() || residual.size() == x.size());
  if (pieces_.empty()) return EncodeGroups(context, x, residual, out);
  std::vector<float> nothing;
  if (residual.empty()) {
    nothing.assign(x.size(), -0.0f);
    residual = nothing;
  }
  Selection selection;
  const int64_t bad = Select(context, x, nullptr, residual, out, &selection);
  if (bad < 0) Quantise({&selection, 1});
  return bad;
}

int64_t Topk2bitCodec::Select(const EncodeContext& context, std::span<const float> x,
                              const float* minus, std::span<float> residual,
                              std::span<std::byte> out, Selection* selection) const {
  CHECK(!pieces_.empty());
  CHECK_EQ(out.size(), EncodedBytes(x.size()));
  CHECK_EQ(residual.size(), x.size());
  *selection = {this, residual, out, {}, {}};
  const size_t sent =
      x.size() / kTopkGroup * Formula::kMostKept + Formula::Kept(x.size() % kTopkGroup);
  selection->positions.resize(sent);
  selection->values.resize(sent);
  uint32_t guess = 0;
  for (size_t begin = 0; begin < x.size(); begin += kTopkGroup) {
    const size_t group = begin / kTopkGroup;
    const size_t first = group * Formula::kMostKept;
    const int64_t bad =
        SelectGroup(context, x.data() + begin, minus == nullptr ? nullptr : minus + begin,
                    residual.data() + begin, std::min(kTopkGroup, x.size() - begin),
                    out.data() + GroupAt(group), &guess, selection->positions.data() + first,
                    selection->values.data() + first);
    if (bad >= 0) return static_cast<int64_t>(begin) + bad;
  }
  return -1;
}

void Topk2bitCodec::Quantise(std::span<const Selection> chunks) const {
  size_t numbers = 0;
  for (const Selection& chunk : chunks) numbers += chunk.values.size();
  std::vector<uint8_t> codes(numbers);
  std::vector<Statistics> of_tensor;
  std::vector<size_t> first_of_chunk;  // index in of_tensor
  std::vector<Run> runs;
  int last_tensor = -1;
  uint8_t* to = codes.data();
  for (const Selection& chunk : chunks) {
    const std::span<const TensorPiece> pieces = chunk.codec->pieces();
    const size_t n = chunk.residual.size();
    for (const TensorPiece& piece : pieces) {
      if (piece.tensor != last_tensor) of_tensor.emplace_back();
      last_tensor = piece.tensor;
      if (&piece == pieces.data()) first_of_chunk.push_back(of_tensor.size() - 1);
    }
    size_t piece = 0;
    const auto end_of_piece = [&] {
      return piece + 1 < pieces.size() ? pieces[piece + 1].begin : n;
    };
    for (size_t begin = 0; begin < n; begin += kTopkGroup) {
      const size_t kept = Formula::Kept(std::min(kTopkGroup, n - begin));
      const size_t first = begin / kTopkGroup * Formula::kMostKept;
      const auto positions = std::span(chunk.positions).subspan(first, kept);
      const auto values = std::span(chunk.values).subspan(first, kept);
      for (size_t j = 0; j < kept;) {
        while (begin + positions[j] >= end_of_piece()) ++piece;
        size_t end = kept;
        if (begin + positions.back() >= end_of_piece()) {
          for (end = j + 1; begin + positions[end] < end_of_piece();) ++end;
        }
        runs.push_back({first_of_chunk.back() + piece, chunk.residual.data() + begin,
                        positions.subspan(j, end - j), values.subspan(j, end - j), to + j});
        j = end;
      }
      to += kept;
    }
  }

  for (const Run& run : runs) of_tensor[run.statistics].AddValues(run.values);
  for (Statistics& statistics : of_tensor) statistics.SetMean();
  for (const Run& run : runs) of_tensor[run.statistics].AddSquares(run.values);
  for (Statistics& statistics : of_tensor) statistics.SetStep();
  for (const Run& run : runs) {
    of_tensor[run.statistics].AddCodes(kernels_.quantise, run.values, run.codes);
  }
  for (Statistics& statistics : of_tensor) statistics.SetLevels();

  for (const Run& run : runs) {
    const auto& levels = of_tensor[run.statistics].levels;
    for (size_t i = 0; i < run.values.size(); ++i) {
      run.residual[run.positions[i]] = run.values[i] - levels[run.codes[i]];
    }
  }
  const uint8_t* from = codes.data();
  for (size_t c = 0; c < chunks.size(); ++c) {
    const Selection& chunk = chunks[c];
    const size_t n = chunk.residual.size();
    for (size_t begin = 0; begin < n; begin += kTopkGroup) {
      const size_t kept = Formula::Kept(std::min(kTopkGroup, n - begin));
      PutCodes(from, kept, chunk.out.data() + begin / kTopkGroup * kGroupCode + kept);
      from += kept;
    }
    const size_t pieces = chunk.codec->pieces().size();
    std::byte* const levels = chunk.out.data() + chunk.out.size() - pieces * Formula::kLevelBytes;
    for (size_t piece = 0; piece < pieces; ++piece) {
      std::memcpy(levels + piece * Formula::kLevelBytes,
                  of_tensor[first_of_chunk[c] + piece].levels.data(), Formula::kLevelBytes);
    }
  }
}

Status Topk2bitCodec::Check(std::span<const std::byte> encoded, size_t n) const {
  if (encoded.size() != EncodedBytes(n)) {
    return InvalidArgument("topk2bit: " + std::to_string(n) + " numbers take " +
                           std::to_string(EncodedBytes(n)) + " bytes, not " +
                           std::to_string(encoded.size()));
  }
  const auto among = [](size_t begin, size_t end) {
    return " among numbers " + std::to_string(begin) + " to " + std::to_string(end - 1) +
           " of the chunk";
  };
  for (size_t begin = 0; begin < n; begin += kTopkGroup) {
    const size_t count = std::min(kTopkGroup, n - begin);
    const size_t kept = Formula::Kept(count);
    PositionReader positions(encoded.data() + GroupAt(begin / kTopkGroup), kept);
    int64_t before = -1;
    for (int64_t position; (position = positions.Next()) >= 0; before = position) {
      if (position <= before || position >= static_cast<int64_t>(count)) {
        return InvalidArgument("topk2bit: position " + std::to_string(position) + " after " +
                               std::to_string(before) + among(begin, begin + count));
      }
    }
    if (positions.read() != kept) {
      return InvalidArgument("topk2bit: " + std::to_string(positions.read()) +
                             " positions instead of " + std::to_string(kept) +
                             among(begin, begin + count));
    }
  }
  for (size_t begin = 0; begin < n;) {
    const size_t piece = PieceOf(begin);
    const size_t end = EndOf(piece, n);
    std::array<float, Formula::kLevels> levels;
    std::memcpy(levels.data(), encoded.data() + LevelsAt(piece, n), Formula::kLevelBytes);
    if (!std::all_of(levels.begin(), levels.end(), [](float v) { return std::isfinite(v); })) {
      return InvalidArgument("topk2bit: a level that is not finite" + among(begin, end));
    }
    begin = end;
  }
  return OkStatus();
}

// A group is read, and its numbers are fetched into the caches, before the group in front of it is
// used: without that each number would be waited for.
template <typename Fetch, typename Use>
void Topk2bitCodec::ForEachSent(std::span<const std::byte> encoded, size_t n, size_t first,
                                size_t count, Fetch fetch, Use use) const {
  CHECK_EQ(encoded.size(), EncodedBytes(n));
  CHECK_EQ(first % kTopkGroup, 0u);
  CHECK(first <= n && count <= n - first);
  constexpr size_t kGroupsAhead = 2;
  std::array<SentOfGroup, kGroupsAhead> groups;
  const size_t end = first + count;
  const auto read = [&](size_t begin) {
    if (begin >= end) return;
    const size_t of_group = std::min(kTopkGroup, n - begin);
    SentOfGroup& group = groups[begin / kTopkGroup % kGroupsAhead];
    group.Read(encoded.data() + GroupAt(begin / kTopkGroup), Formula::Kept(of_group), of_group);
    for (size_t j = 0; j < group.count; ++j) fetch(begin - first + group.positions[j]);
  };
  for (size_t ahead = 0; ahead < kGroupsAhead; ++ahead) read(first + ahead * kTopkGroup);
  for (size_t begin = first; begin < end; begin += kTopkGroup) {
    const SentOfGroup& group = groups[begin / kTopkGroup % kGroupsAhead];
    size_t piece = PieceOf(begin);
    size_t end_of_piece = begin;  // the levels of a piece are read when it has a number
    std::array<float, Formula::kLevels> levels;
    for (size_t j = 0; j < group.count; ++j) {
      const size_t at = begin + group.positions[j];
      if (at >= end) break;
      if (at >= end_of_piece) {
        while (at >= EndOf(piece, n)) ++piece;
        end_of_piece = EndOf(piece, n);
        std::memcpy(levels.data(), encoded.data() + LevelsAt(piece, n), Formula::kLevelBytes);
      }
      use(at - first, levels[group.codes[j]]);
    }
    read(begin + kGroupsAhead * kTopkGroup);
  }
}

void Topk2bitCodec::DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first,
                              float scale, std::span<float> sum) const {
  ForEachSent(
      encoded, n, first, sum.size(), [sum](size_t i) { __builtin_prefetch(sum.data() + i, 1); },
      [scale, sum](size_t i, float value) { sum[i] += scale * value; });
}

// Numbers that were not sent are -0, which changes no sum.
void Topk2bitCodec::Decode(std::span<const std::byte> encoded, size_t n, size_t first,
                           std::span<float> out) const {
  for (size_t begin = 0; begin < out.size(); begin += kTopkGroup) {
    const std::span<float> group = out.subspan(begin, std::min(kTopkGroup, out.size() - begin));
    std::ranges::fill(group, -0.0f);
    ForEachSent(
        encoded, n, first + begin, group.size(), [](size_t) {},
        [group](size_t i, float value) { group[i] = value; });
  }
}

}  // namespace kumo
