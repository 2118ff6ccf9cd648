// JSON writer for machine-readable output.
//
//   JsonFields fields;
//   fields.Add("round", 812).Add("workers", JsonArray().Add("worker-0").Add("worker-1"));
//   fields.object()   {"round":812,"workers":["worker-0","worker-1"]}
//
// Integers are written with all digits, other numbers with enough digits to restore the same bits.
// NaN and infinities become null, because JSON cannot represent them.
//
// Plain values.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace kumo {

class JsonArray;
class JsonFields;

// True if all bytes belong to UTF-8 characters (RFC 3629).
bool IsUtf8(std::string_view text);

// Returns the JSON text of a value. Bytes that are not UTF-8 become U+FFFD.
std::string ToJson(std::string_view text);
inline std::string ToJson(const char* text) { return ToJson(std::string_view(text)); }
std::string ToJson(double number);
template <std::integral T>
std::string ToJson(T number) {
  if constexpr (std::same_as<T, bool>) return number ? "true" : "false";
  return std::to_string(number);
}
std::string ToJson(const JsonArray& array);
std::string ToJson(const JsonFields& object);

// The fields of one object in the order of insertion. Keys must differ.
class JsonFields {
 public:
  template <typename T>
  JsonFields& Add(std::string_view key, const T& value) {
    return AddRaw(key, ToJson(value));
  }
  // Skips the field if there is no value.
  template <typename T>
  JsonFields& Add(std::string_view key, const std::optional<T>& value) {
    return value ? Add(key, *value) : *this;
  }
  JsonFields& AddNull(std::string_view key) { return AddRaw(key, "null"); }

  // "\"a\":1,\"b\":null", without braces.
  const std::string& text() const { return text_; }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  JsonFields& AddRaw(std::string_view key, std::string_view value);

  std::string text_;
};

class JsonArray {
 public:
  template <typename T>
  JsonArray& Add(const T& item) {
    if (!text_.empty()) text_ += ',';
    text_ += ToJson(item);
    return *this;
  }
  std::string array() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

}  // namespace kumo
