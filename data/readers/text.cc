#include "data/readers/all.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <glog/logging.h>
#include <boost/locale/utf.hpp>

#include "common/base/rng.h"
#include "data/readers/byte_source.h"

namespace kumo {
namespace {

constexpr int32_t kBytes = 256;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kCodePoints = 0x110000;
constexpr uint32_t kByteOrderMark = 0xfeff;
constexpr int32_t kUnused = -1;  // number of a code point that does not occur

// A part of a file as tokens.
struct Tokens {
  std::vector<int32_t> numbers;
  int vocabulary = 0;
  std::vector<std::string> names = {};  // by number; empty for bytes
};

Fields WindowFields(int64_t window) {
  return {{kTokensField, NumberType::kInt32, {window}},
          {kLabelField, NumberType::kInt32, {window}}};
}

class TextDataset final : public Dataset {
 public:
  // tokens: more than one window. Windows are drawn at random, or lie side by side.
  TextDataset(std::string name, Tokens tokens, int64_t window, int64_t samples, bool drawn)
      : name_(std::move(name)),
        tokens_(std::move(tokens)),
        window_(window),
        samples_(samples),
        drawn_(drawn),
        fields_(WindowFields(window)) {}

  int64_t size() const override { return samples_; }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return tokens_.vocabulary; }
  std::span<const std::string> class_names() const override { return tokens_.names; }
  const std::string& name() const override { return name_; }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    CHECK(key.sample >= 0 && key.sample < size()) << name_ << ": sample " << key.sample;
    const std::span<const int32_t> from = std::span(tokens_.numbers).subspan(Begin(key));
    sample->Borrow(0, std::as_bytes(from.first(window_)));
    sample->Borrow(1, std::as_bytes(from.subspan(1, window_)));
    return OkStatus();
  }
  bool in_memory() const override { return true; }

 private:
  int64_t Begin(const SampleKey& key) const {
    if (!drawn_) return key.sample * window_;
    Rng rng(key.seed, RngPurpose::kTextWindow, static_cast<uint64_t>(key.epoch),
            static_cast<uint64_t>(key.sample));
    const int64_t places = std::ssize(tokens_.numbers) - window_;
    return static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(places)));
  }

  const std::string name_;
  const Tokens tokens_;
  const int64_t window_;
  const int64_t samples_;
  const bool drawn_;
  const Fields fields_;
};

// The file is read piece by piece, twice: first to count its tokens, then for those of one part. So
// no more of it is in memory than the part takes.

// Calls see(byte) for each byte.
template <typename See>
Status ForEachByte(const std::string& path, const See& see) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::vector<uint8_t> piece(kPiece);
  while (true) {
    KUMO_ASSIGN_OR_RETURN(const size_t got, source.Read(piece));
    for (size_t i = 0; i < got; ++i) see(piece[i]);
    if (got < kPiece) return OkStatus();
  }
}

// Calls see(code point) for each character of UTF-8, except a byte order mark, which programs add
// at the start.
template <typename See>
Status ForEachCharacter(const std::string& path, const See& see) {
  namespace utf = boost::locale::utf;
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::string text;  // of the file from `offset` on
  int64_t offset = 0, lines = 0;
  for (bool more = true; more;) {
    const size_t rest = text.size();
    text.resize(rest + kPiece);
    const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(text.data()) + rest, kPiece);
    KUMO_ASSIGN_OR_RETURN(const size_t got, source.Read(out));
    text.resize(rest + got);
    more = got == kPiece;
    auto at = text.cbegin();
    while (at != text.cend()) {
      const auto begin = at;
      const int64_t place = offset + (begin - text.cbegin());
      const utf::code_point point = utf::utf_traits<char>::decode(at, text.cend());
      if (point == utf::incomplete && more) {
        at = begin;
        break;
      }
      if (!utf::is_valid_codepoint(point)) {
        return InvalidArgument(path + ":" + std::to_string(lines + 1) + ": byte " +
                               std::to_string(place) +
                               " of the file is not UTF-8; use data.tokens = bytes for any file");
      }
      if (point == '\n') ++lines;
      if (point != kByteOrderMark || place > 0) see(point);
    }
    offset += at - text.cbegin();
    text.erase(text.cbegin(), at);
  }
  return OkStatus();
}

std::string Utf8(size_t code_point) {
  std::string text;
  boost::locale::utf::utf_traits<char>::encode(static_cast<uint32_t>(code_point),
                                               std::back_inserter(text));
  return text;
}

// The tokens of a file, not read.
struct TokenCount {
  int64_t tokens = 0;
  int vocabulary = 0;
  std::vector<std::string> names = {};  // by number; empty for bytes
  std::vector<int32_t> numbers = {};    // by code point; empty for bytes
};

Result<TokenCount> CountTokens(const ReaderRequest& request) {
  TokenCount count;
  if (request.text.tokens == TextTokens::kBytes) {
    count.vocabulary = kBytes;
    KUMO_RETURN_IF_ERROR(ForEachByte(request.images, [&](uint8_t) { ++count.tokens; }));
    return count;
  }
  count.numbers.assign(kCodePoints, kUnused);
  KUMO_RETURN_IF_ERROR(ForEachCharacter(request.images, [&](uint32_t point) {
    ++count.tokens;
    count.numbers[point] = 0;
  }));
  for (size_t point = 0; point < kCodePoints; ++point) {
    if (count.numbers[point] == kUnused) continue;
    count.numbers[point] = count.vocabulary++;
    count.names.push_back(Utf8(point));
  }
  return count;
}

// The numbers of the tokens [begin, end).
Result<std::vector<int32_t>> ReadPart(const ReaderRequest& request, const TokenCount& count,
                                      int64_t begin, int64_t end) {
  std::vector<int32_t> numbers;
  numbers.reserve(static_cast<size_t>(end - begin));
  int64_t tokens = 0;
  bool known = true;
  const auto take = [&](int32_t number) {
    known = known && number != kUnused;
    if (tokens >= begin && tokens < end) numbers.push_back(number);
    ++tokens;
  };
  if (request.text.tokens == TextTokens::kBytes) {
    KUMO_RETURN_IF_ERROR(ForEachByte(request.images, take));
  } else {
    KUMO_RETURN_IF_ERROR(
        ForEachCharacter(request.images, [&](uint32_t point) { take(count.numbers[point]); }));
  }
  if (known && tokens == count.tokens) return numbers;
  return DataLoss(request.images + ": was changed while it was read; start the job again");
}

// Both parts of the file, and their numbers of samples.
struct Parts {
  int64_t train_tokens = 0;
  int64_t validation_tokens = 0;
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
};

// The number of windows side by side, each with a label for its last token.
int64_t Windows(int64_t tokens, int64_t window) { return (tokens - 1) / window; }

Result<Parts> Split(const ReaderRequest& request, int64_t tokens) {
  const TextSettings& text = request.text;
  Parts parts;
  parts.train_tokens =
      static_cast<int64_t>(static_cast<double>(tokens) * (1.0 - text.validation_share));
  parts.validation_tokens = tokens - parts.train_tokens;
  for (const auto& [part, what] : {std::pair(parts.train_tokens, "training part"),
                                   std::pair(parts.validation_tokens, "validation part")}) {
    if (part > text.window) continue;
    return InvalidArgument(request.images + ": its " + what + " has " + std::to_string(part) +
                           " tokens, but a window needs " + std::to_string(text.window) +
                           " and one more; decrease data.window, change "
                           "data.validation_share, or use a longer text");
  }
  parts.train_samples = text.windows > 0 ? text.windows : Windows(parts.train_tokens, text.window);
  parts.validation_samples = Windows(parts.validation_tokens, text.window);
  return parts;
}

int64_t Limited(int64_t samples, int64_t limit) {
  return limit > 0 ? std::min(limit, samples) : samples;
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenText(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(TokenCount count, CountTokens(request));
  KUMO_ASSIGN_OR_RETURN(const Parts parts, Split(request, count.tokens));
  const bool trains = request.part == DataPart::kTraining;
  const int64_t begin = trains ? 0 : parts.train_tokens;
  const int64_t end = trains ? parts.train_tokens : count.tokens;
  Tokens tokens;
  KUMO_ASSIGN_OR_RETURN(tokens.numbers, ReadPart(request, count, begin, end));
  tokens.vocabulary = count.vocabulary;
  tokens.names = std::move(count.names);
  const int64_t samples =
      Limited(trains ? parts.train_samples : parts.validation_samples, request.limit);
  return std::unique_ptr<Dataset>(std::make_unique<TextDataset>(
      request.images, std::move(tokens), request.text.window, samples, trains));
}

Result<DatasetExtents> MeasureText(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const TokenCount count, CountTokens(request));
  KUMO_ASSIGN_OR_RETURN(const Parts parts, Split(request, count.tokens));
  const bool trains = request.part == DataPart::kTraining;
  DatasetExtents extents;
  extents.samples = Limited(trains ? parts.train_samples : parts.validation_samples, request.limit);
  extents.fields = WindowFields(request.text.window);
  extents.bytes =
      (trains ? parts.train_tokens : parts.validation_tokens) * BytesOf(NumberType::kInt32);
  extents.vocabulary = count.vocabulary;
  return extents;
}

}  // namespace kumo
