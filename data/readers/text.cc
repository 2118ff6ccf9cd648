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
#include "common/base/text.h"
#include "data/readers/byte_source.h"

namespace kumo {
namespace {

constexpr int32_t kBytes = 256;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kCodePoints = 0x110000;

// A file as tokens.
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

Result<std::string> ReadAll(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::string text;
  while (true) {
    const size_t have = text.size();
    text.resize(have + kPiece);
    const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(text.data()) + have, kPiece);
    KUMO_ASSIGN_OR_RETURN(const size_t got, source.Read(out));
    text.resize(have + got);
    if (got < kPiece) return text;
  }
}

Tokens TokensOfBytes(std::string_view text) {
  Tokens tokens{{}, kBytes};
  tokens.numbers.reserve(text.size());
  for (const char c : text) tokens.numbers.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string Utf8(size_t code_point) {
  std::string text;
  boost::locale::utf::utf_traits<char>::encode(static_cast<uint32_t>(code_point),
                                               std::back_inserter(text));
  return text;
}

Result<Tokens> TokensOfCharacters(const std::string& path, std::string_view text) {
  using Utf = boost::locale::utf::utf_traits<char>;
  Tokens tokens;
  tokens.numbers.reserve(text.size());
  std::vector<int32_t> number_of(kCodePoints, -1);  // first 0 for code points that occur
  // Programs add a byte order mark, which is no character of the text.
  for (auto at = text.end() - std::ssize(WithoutByteOrderMark(text)); at != text.end();) {
    const auto begin = at;
    const boost::locale::utf::code_point point = Utf::decode(at, text.end());
    if (!boost::locale::utf::is_valid_codepoint(point)) {
      const auto line = std::count(text.begin(), begin, '\n') + 1;
      return InvalidArgument(path + ":" + std::to_string(line) + ": byte " +
                             std::to_string(begin - text.begin()) +
                             " of the file is not UTF-8; use data.tokens = bytes for any file");
    }
    tokens.numbers.push_back(static_cast<int32_t>(point));
    number_of[point] = 0;
  }
  for (size_t point = 0; point < kCodePoints; ++point) {
    if (number_of[point] < 0) continue;
    number_of[point] = tokens.vocabulary++;
    tokens.names.push_back(Utf8(point));
  }
  for (int32_t& token : tokens.numbers) token = number_of[token];
  return tokens;
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

Result<Tokens> ReadTokens(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadAll(request.images));
  if (request.text.tokens == TextTokens::kBytes) return TokensOfBytes(text);
  return TokensOfCharacters(request.images, text);
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenText(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(Tokens tokens, ReadTokens(request));
  KUMO_ASSIGN_OR_RETURN(const Parts parts, Split(request, std::ssize(tokens.numbers)));
  const bool trains = request.part == DataPart::kTraining;
  const auto middle = tokens.numbers.begin() + parts.train_tokens;
  if (trains) {
    tokens.numbers.erase(middle, tokens.numbers.end());
  } else {
    tokens.numbers.erase(tokens.numbers.begin(), middle);
  }
  tokens.numbers.shrink_to_fit();
  const int64_t samples =
      Limited(trains ? parts.train_samples : parts.validation_samples, request.limit);
  return std::unique_ptr<Dataset>(std::make_unique<TextDataset>(
      request.images, std::move(tokens), request.text.window, samples, trains));
}

Result<DatasetExtents> MeasureText(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const Tokens tokens, ReadTokens(request));
  KUMO_ASSIGN_OR_RETURN(const Parts parts, Split(request, std::ssize(tokens.numbers)));
  const bool trains = request.part == DataPart::kTraining;
  DatasetExtents extents;
  extents.samples = Limited(trains ? parts.train_samples : parts.validation_samples, request.limit);
  extents.fields = WindowFields(request.text.window);
  extents.bytes =
      (trains ? parts.train_tokens : parts.validation_tokens) * BytesOf(NumberType::kInt32);
  extents.vocabulary = tokens.vocabulary;
  return extents;
}

}  // namespace kumo
