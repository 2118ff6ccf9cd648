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

void PutPositions(const uint16_t* positions, size_t kept, std::byte* out) {
  for (size_t j = 0; j < kept; ++j) {
    out[j] |= std::byte{Formula::LowBits(positions[j])};
    const size_t bit = Formula::HighBit(j, positions[j]);
    out[bit / 2] |= std::byte{Formula::MaskOf(bit)};
  }
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
  // The 2 high bits of 8 bytes side by side.
  static uint64_t HighBits(uint64_t bytes) {
    bytes = (bytes >> 6) & 0x0303030303030303u;
    bytes = (bytes | bytes >> 6) & 0x000f000f000f000fu;
    bytes = (bytes | bytes >> 12) & 0x000000ff000000ffu;
    return (bytes | bytes >> 24) & 0xffffu;
  }

  const std::byte* const positions_;
  const size_t kept_;
  std::array<uint64_t, 2> ones_{};  // the high bits
  size_t word_ = 0;
  size_t read_ = 0;
};

// Statistics of the sent numbers of one tensor, in four passes over them. Sums are of each group's
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
  // Codes number `first` of the group and those behind it.
  void AddCodes(std::span<const float> values, size_t first, std::byte* codes) {
    std::array<double, Formula::kLevels> of_group{};
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t code = Formula::CodeOf(values[i], mean, step);
      of_group[code] += static_cast<double>(values[i]);
      ++counts[code];
      codes[(first + i) / 4] |= static_cast<std::byte>(code << ((first + i) % 4 * 2));
    }
    for (int c = 0; c < Formula::kLevels; ++c) sums[c] += of_group[c];
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
  const Topk2bitCodec::Selection* chunk;
  size_t begin_of_group;  // in the chunk
  size_t first;           // in the group's numbers that are sent
  size_t first_of_chunk;  // in those of the chunk
  size_t count;
  std::byte* codes;

  std::span<const float> values() const {
    return std::span(chunk->values).subspan(first_of_chunk, count);
  }
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
  return std::unique_ptr<const Codec>(new Topk2bitCodec(kernel_, settings_, std::move(pieces), n));
}

// residual <- u; positions and values of what is sent, and the positions' bytes.
int64_t Topk2bitCodec::SelectGroup(const EncodeContext& context, const float* x, float* residual,
                                   size_t count, std::byte* out, int* guess, uint16_t* positions,
                                   float* values) const {
  alignas(64) std::array<float, kTopkGroup> u;
  const uint32_t top = kernel_.add(x, residual, settings_.residual_factor, count, u.data());
  if (top > std::bit_cast<uint32_t>(context.most)) {
    return std::find_if(u.begin(), u.begin() + count,
                        [&context](float v) { return !(std::fabs(v) <= context.most); }) -
           u.begin();
  }
  const size_t kept = Formula::Kept(count);
  kernel_.select(u.data(), count, kept, guess, positions);
  std::fill_n(out, Formula::GroupBytes(kept), std::byte{0});
  PutPositions(positions, kept, out);
  for (size_t j = 0; j < kept; ++j) values[j] = u[positions[j]];
  if (residual != nullptr) kernel_.keep(u.data(), count, residual);
  return -1;
}

// Levels of each group.
int64_t Topk2bitCodec::EncodeGroups(const EncodeContext& context, std::span<const float> x,
                                    std::span<float> residual, std::span<std::byte> out) const {
  std::array<uint16_t, Formula::kMostKept> positions;
  std::array<float, Formula::kMostKept> values;
  int guess = 0;
  for (size_t begin = 0; begin < x.size(); begin += kTopkGroup) {
    const size_t group = begin / kTopkGroup;
    const size_t count = std::min(kTopkGroup, x.size() - begin);
    float* const rest = residual.empty() ? nullptr : residual.data() + begin;
    std::byte* const code = out.data() + GroupAt(group);
    const int64_t bad = SelectGroup(context, x.data() + begin, rest, count, code, &guess,
                                    positions.data(), values.data());
    if (bad >= 0) return static_cast<int64_t>(begin) + bad;
    const size_t kept = Formula::Kept(count);
    const std::span<const float> sent(values.data(), kept);
    Statistics statistics;
    statistics.AddValues(sent);
    statistics.SetMean();
    statistics.AddSquares(sent);
    statistics.SetStep();
    statistics.AddCodes(sent, 0, code + kept);
    statistics.SetLevels();
    std::memcpy(out.data() + LevelsAt(group, x.size()), statistics.levels.data(),
                Formula::kLevelBytes);
    for (size_t j = 0; j < kept && rest != nullptr; ++j) {
      rest[positions[j]] = values[j] - statistics.levels[Formula::CodeAt(code + kept, j)];
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
  const int64_t bad = Select(context, x, residual, out, &selection);
  if (bad < 0) Quantise({&selection, 1});
  return bad;
}

int64_t Topk2bitCodec::Select(const EncodeContext& context, std::span<const float> x,
                              std::span<float> residual, std::span<std::byte> out,
                              Selection* selection) const {
  CHECK(!pieces_.empty());
  CHECK_EQ(out.size(), EncodedBytes(x.size()));
  CHECK_EQ(residual.size(), x.size());
  *selection = {this, residual, out, {}, {}};
  const size_t sent =
      x.size() / kTopkGroup * Formula::kMostKept + Formula::Kept(x.size() % kTopkGroup);
  selection->positions.resize(sent);
  selection->values.resize(sent);
  int guess = 0;
  for (size_t begin = 0; begin < x.size(); begin += kTopkGroup) {
    const size_t group = begin / kTopkGroup;
    const size_t first = group * Formula::kMostKept;
    const int64_t bad =
        SelectGroup(context, x.data() + begin, residual.data() + begin,
                    std::min(kTopkGroup, x.size() - begin), out.data() + GroupAt(group), &guess,
                    selection->positions.data() + first, selection->values.data() + first);
    if (bad >= 0) return static_cast<int64_t>(begin) + bad;
  }
  return -1;
}

void Topk2bitCodec::Quantise(std::span<const Selection> chunks) {
  std::vector<Statistics> of_tensor;
  std::vector<size_t> first_of_chunk;  // index in of_tensor
  std::vector<Run> runs;
  int last_tensor = -1;
  for (const Selection& chunk : chunks) {
    const Topk2bitCodec& codec = *chunk.codec;
    const size_t n = chunk.residual.size();
    for (const TensorPiece& piece : codec.pieces_) {
      if (piece.tensor != last_tensor) of_tensor.emplace_back();
      last_tensor = piece.tensor;
      if (&piece == codec.pieces_.data()) first_of_chunk.push_back(of_tensor.size() - 1);
    }
    size_t piece = 0;
    for (size_t begin = 0; begin < n; begin += kTopkGroup) {
      const size_t kept = Formula::Kept(std::min(kTopkGroup, n - begin));
      const size_t first = begin / kTopkGroup * Formula::kMostKept;
      std::byte* const codes = chunk.out.data() + codec.GroupAt(begin / kTopkGroup) + kept;
      for (size_t j = 0; j < kept;) {
        while (begin + chunk.positions[first + j] >= codec.EndOf(piece, n)) ++piece;
        size_t end = j + 1;
        while (end < kept && begin + chunk.positions[first + end] < codec.EndOf(piece, n)) ++end;
        runs.push_back(
            {first_of_chunk.back() + piece, &chunk, begin, j, first + j, end - j, codes});
        j = end;
      }
    }
  }

  for (const Run& run : runs) of_tensor[run.statistics].AddValues(run.values());
  for (Statistics& statistics : of_tensor) statistics.SetMean();
  for (const Run& run : runs) of_tensor[run.statistics].AddSquares(run.values());
  for (Statistics& statistics : of_tensor) statistics.SetStep();
  for (const Run& run : runs)
    of_tensor[run.statistics].AddCodes(run.values(), run.first, run.codes);
  for (Statistics& statistics : of_tensor) statistics.SetLevels();

  for (const Run& run : runs) {
    const auto& levels = of_tensor[run.statistics].levels;
    for (size_t i = 0; i < run.count; ++i) {
      const size_t at = run.begin_of_group + run.chunk->positions[run.first_of_chunk + i];
      const float level = levels[Formula::CodeAt(run.codes, run.first + i)];
      run.chunk->residual[at] = run.values()[i] - level;
    }
  }
  for (size_t c = 0; c < chunks.size(); ++c) {
    const Selection& chunk = chunks[c];
    for (size_t piece = 0; piece < chunk.codec->pieces_.size(); ++piece) {
      std::memcpy(chunk.out.data() + chunk.codec->LevelsAt(piece, chunk.residual.size()),
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

// Positions that do not ascend are left out, so that any bytes mean the same numbers everywhere.
template <typename Use>
void Topk2bitCodec::ForEachSent(std::span<const std::byte> encoded, size_t n, size_t first,
                                size_t count, Use use) const {
  CHECK_EQ(encoded.size(), EncodedBytes(n));
  CHECK_EQ(first % kBucket, 0u);
  CHECK(first <= n && count <= n - first);
  const size_t end = first + count;
  for (size_t begin = first / kTopkGroup * kTopkGroup; begin < end; begin += kTopkGroup) {
    const auto of_group = static_cast<int64_t>(std::min(kTopkGroup, n - begin));
    const size_t kept = Formula::Kept(of_group);
    const std::byte* const code = encoded.data() + GroupAt(begin / kTopkGroup);
    PositionReader positions(code, kept);
    size_t piece = PieceOf(begin);
    size_t end_of_piece = begin;  // the levels of a piece are read when it has a number
    std::array<float, Formula::kLevels> levels;
    int64_t before = -1;
    for (int64_t position; (position = positions.Next()) >= 0;) {
      if (position <= before || position >= of_group) continue;
      before = position;
      const size_t at = begin + static_cast<size_t>(position);
      if (at < first) continue;
      if (at >= end) break;
      if (at >= end_of_piece) {
        while (at >= EndOf(piece, n)) ++piece;
        end_of_piece = EndOf(piece, n);
        std::memcpy(levels.data(), encoded.data() + LevelsAt(piece, n), Formula::kLevelBytes);
      }
      use(at - first, levels[Formula::CodeAt(code + kept, positions.read() - 1)]);
    }
  }
}

void Topk2bitCodec::DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first,
                              float scale, std::span<float> sum) const {
  ForEachSent(encoded, n, first, sum.size(),
              [scale, sum](size_t i, float value) { sum[i] += scale * value; });
}

// Numbers that were not sent are -0, which changes no sum.
void Topk2bitCodec::Decode(std::span<const std::byte> encoded, size_t n, size_t first,
                           std::span<float> out) const {
  std::fill(out.begin(), out.end(), -0.0f);
  ForEachSent(encoded, n, first, out.size(), [out](size_t i, float value) { out[i] = value; });
}

}  // namespace kumo
