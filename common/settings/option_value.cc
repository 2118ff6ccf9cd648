#include "common/settings/option_value.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "common/base/did_you_mean.h"
#include "common/base/text.h"
#include "common/settings/experiment.h"

namespace kumo {
namespace {

constexpr std::string_view kEqualShares = "equal";

// A bound as a person would write it: 4096, not 4.096e+03.
std::string Bound(double bound) {
  if (std::floor(bound) == bound && std::fabs(bound) < 1e16) {
    return ShortestText(static_cast<int64_t>(bound));
  }
  return ShortestText(bound);
}

Status MustBe(std::string_view kind, const Allowed& allowed) {
  const std::string range = allowed.Text();
  std::string text = "must be " + std::string(kind);
  if (!range.empty()) text += (kind.empty() ? "" : ", ") + range;
  return InvalidArgument(text);
}

template <typename T>
Status ReadNumber(std::string_view text, const Allowed& allowed, T* value) {
  const std::optional<T> number = ParseNumber<T>(text);
  if (!number) return MustBe(std::is_integral_v<T> ? "an integer" : "a number", allowed);
  const double position = static_cast<double>(*number);
  const bool inside = std::isfinite(position) &&
                      (allowed.min_excluded ? position > allowed.min : position >= allowed.min) &&
                      (allowed.max_excluded ? position < allowed.max : position <= allowed.max);
  if (!inside) return MustBe(allowed.Text().empty() ? "finite" : "", allowed);
  *value = *number;
  return OkStatus();
}

template <typename T>
Status ReadList(std::string_view text, const Allowed& allowed, std::vector<T>* value) {
  std::vector<T> list;
  while (!Trimmed(text).empty()) {
    const size_t comma = text.find(',');
    T element{};
    KUMO_RETURN_IF_ERROR(ReadValue(Trimmed(text.substr(0, comma)), allowed, &element));
    list.push_back(element);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  *value = std::move(list);
  return OkStatus();
}

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string Allowed::Text() const {
  if (!text.empty()) return std::string(text);
  if (!values.empty()) return "one of " + Join(values);
  const bool low = std::isfinite(min), high = std::isfinite(max);
  if (low && high) {
    return (min_excluded ? "above " : "") + Bound(min) + " .. " + (max_excluded ? "below " : "") +
           Bound(max);
  }
  if (low) return (min_excluded ? "above " : "at least ") + Bound(min);
  if (high) return (max_excluded ? "below " : "at most ") + Bound(max);
  return "";
}

Status ReadValue(std::string_view text, const Allowed&, bool* value) {
  const bool yes = text == "true" || text == "yes" || text == "on" || text == "1";
  const bool no = text == "false" || text == "no" || text == "off" || text == "0";
  if (!yes && !no) return InvalidArgument("must be true or false");
  *value = yes;
  return OkStatus();
}

Status ReadValue(std::string_view text, const Allowed& allowed, int* value) {
  return ReadNumber(text, allowed, value);
}
Status ReadValue(std::string_view text, const Allowed& allowed, int64_t* value) {
  return ReadNumber(text, allowed, value);
}
Status ReadValue(std::string_view text, const Allowed& allowed, uint64_t* value) {
  return ReadNumber(text, allowed, value);
}
Status ReadValue(std::string_view text, const Allowed& allowed, float* value) {
  return ReadNumber(text, allowed, value);
}
Status ReadValue(std::string_view text, const Allowed& allowed, double* value) {
  return ReadNumber(text, allowed, value);
}

Status CheckWord(std::string_view text, const Allowed& allowed) {
  if (allowed.values.empty() || std::ranges::count(allowed.values, text) > 0) return OkStatus();
  return InvalidArgument("must be " + allowed.Text() + DidYouMean(text, allowed.values));
}

Status ReadValue(std::string_view text, const Allowed& allowed, std::string* value) {
  if (allowed.not_empty && text.empty()) return InvalidArgument("must not be empty");
  for (const char c : text) {
    // Values are lines of the text that two processes compare, and go to terminals.
    const bool of_lines = allowed.lines && (c == '\n' || c == '\t' || c == '\r');
    if (!of_lines && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      return InvalidArgument("must not hold control characters");
    }
    if (!allowed.characters.empty() && !IsWordCharacter(c) &&
        allowed.characters.find(c) == std::string::npos) {
      return MustBe("", allowed);
    }
  }
  if (!allowed.characters.empty() && text.empty()) return MustBe("", allowed);
  KUMO_RETURN_IF_ERROR(CheckWord(text, allowed));
  *value = text == allowed.word_for_empty ? "" : std::string(text);
  return OkStatus();
}

Status ReadValue(std::string_view text, const Allowed& allowed, Device* value) {
  KUMO_RETURN_IF_ERROR(CheckWord(text, allowed));
  const std::optional<Device> device = FindDevice(text);
  if (!device) return MustBe("", allowed);
  *value = *device;
  return OkStatus();
}

Status ReadValue(std::string_view text, const Allowed& allowed, ResumeFrom* value) {
  const std::optional<ResumeFrom> from = FindResumeFrom(text);
  if (!from) return MustBe("", allowed);
  *value = *from;
  return OkStatus();
}

Status ReadValue(std::string_view text, const Allowed& allowed, ClassShares* value) {
  ClassShares shares;
  shares.equal = text == kEqualShares;
  if (!shares.equal && !ReadList(text, allowed, &shares.of_class).ok()) return MustBe("", allowed);
  *value = std::move(shares);
  return OkStatus();
}

Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<double>* value) {
  return ReadList(text, allowed, value);
}
Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<std::string>* value) {
  return ReadList(text, allowed, value);
}

std::string WriteValue(bool value) { return value ? "true" : "false"; }
std::string WriteValue(int value) { return ShortestText(value); }
std::string WriteValue(int64_t value) { return ShortestText(value); }
std::string WriteValue(uint64_t value) { return ShortestText(value); }
std::string WriteValue(float value) { return ShortestText(value); }
std::string WriteValue(double value) { return ShortestText(value); }
std::string WriteValue(const std::string& value) { return value; }
std::string WriteValue(const Device& value) { return value.ToString(); }
std::string WriteValue(const ResumeFrom& value) { return value.ToString(); }
std::string WriteValue(const ClassShares& value) {
  return value.equal ? std::string(kEqualShares) : WriteValue(value.of_class);
}
std::string WriteValue(const std::vector<double>& value) {
  std::vector<std::string> words;
  for (const double number : value) words.push_back(ShortestText(number));
  return Join(words);
}
std::string WriteValue(const std::vector<std::string>& value) { return Join(value); }

Result<std::vector<int64_t>> ParseImageExtents(std::string_view text) {
  std::vector<int64_t> extents;
  while (extents.size() < 3) {
    const std::optional<int64_t> extent = TakeNumber<int64_t>(&text);
    if (!extent || *extent < 1 || *extent > kMaxImageSide) break;
    extents.push_back(*extent);
    if (extents.size() < 3 && text.starts_with('x')) text.remove_prefix(1);
  }
  if (text.empty() && extents.size() == 3 && (extents[0] == 1 || extents[0] == 3)) return extents;
  return InvalidArgument("must be channels (1 or 3) x height x width, sides of 1 .. " +
                         std::to_string(kMaxImageSide) + " pixels, such as 3x224x224");
}

}  // namespace kumo
