// A JSON object that a program asked by `kumo` printed.
//
// Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/struct.pb.h>

namespace kumo {

// A field that is missing or of another kind reads as "", 0, false or nothing.
class JsonAnswer {
 public:
  explicit JsonAnswer(std::string_view text);
  // The first line of the text that is an object. others: receives the other lines, if not null.
  static JsonAnswer LineIn(std::string_view text, std::vector<std::string>* others = nullptr);

  // False if the text is no JSON object.
  bool read() const { return read_; }

  bool Has(const std::string& name) const;
  std::string Text(const std::string& name) const;
  double Number(const std::string& name) const;
  bool Flag(const std::string& name) const;
  JsonAnswer Object(const std::string& name) const;
  std::vector<std::string> Texts(const std::string& name) const;
  std::vector<JsonAnswer> Objects(const std::string& name) const;

  // A whole number: 0 if it is negative, the largest if it is too large.
  int64_t Count(const std::string& name) const;
  std::vector<int64_t> Counts(const std::string& name) const;

 private:
  explicit JsonAnswer(google::protobuf::Struct object) : object_(std::move(object)), read_(true) {}
  const google::protobuf::Value& ValueOf(const std::string& name) const;

  google::protobuf::Struct object_;
  bool read_ = false;
};

}  // namespace kumo
