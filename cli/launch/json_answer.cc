#include "cli/launch/json_answer.h"

#include <limits>

#include <google/protobuf/util/json_util.h>

#include "common/base/text.h"

namespace kumo {
namespace {

int64_t CountOf(double number) {
  constexpr double kTooLarge = 9223372036854775808.0;  // 2^63
  if (!(number >= 0)) return 0;
  return number < kTooLarge ? static_cast<int64_t>(number) : std::numeric_limits<int64_t>::max();
}

}  // namespace

JsonAnswer::JsonAnswer(std::string_view text)
    : read_(google::protobuf::util::JsonStringToMessage(std::string(text), &object_).ok()) {}

JsonAnswer JsonAnswer::LineIn(std::string_view text, std::vector<std::string>* others) {
  JsonAnswer found("");
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (!found.read() && line.starts_with("{")) {
      if (JsonAnswer answer(line); answer.read()) {
        found = std::move(answer);
        continue;
      }
    }
    if (others != nullptr) others->emplace_back(line);
  }
  return found;
}

const google::protobuf::Value& JsonAnswer::ValueOf(const std::string& name) const {
  const auto field = object_.fields().find(name);
  return field == object_.fields().end() ? google::protobuf::Value::default_instance()
                                         : field->second;
}

bool JsonAnswer::Has(const std::string& name) const { return object_.fields().contains(name); }

std::string JsonAnswer::Text(const std::string& name) const { return ValueOf(name).string_value(); }

double JsonAnswer::Number(const std::string& name) const { return ValueOf(name).number_value(); }

bool JsonAnswer::Flag(const std::string& name) const { return ValueOf(name).bool_value(); }

JsonAnswer JsonAnswer::Object(const std::string& name) const {
  return JsonAnswer(ValueOf(name).struct_value());
}

std::vector<std::string> JsonAnswer::Texts(const std::string& name) const {
  std::vector<std::string> texts;
  for (const auto& value : ValueOf(name).list_value().values()) {
    texts.push_back(value.string_value());
  }
  return texts;
}

std::vector<JsonAnswer> JsonAnswer::Objects(const std::string& name) const {
  std::vector<JsonAnswer> objects;
  for (const auto& value : ValueOf(name).list_value().values()) {
    objects.push_back(JsonAnswer(value.struct_value()));
  }
  return objects;
}

int64_t JsonAnswer::Count(const std::string& name) const { return CountOf(Number(name)); }

std::vector<int64_t> JsonAnswer::Counts(const std::string& name) const {
  std::vector<int64_t> counts;
  for (const auto& value : ValueOf(name).list_value().values()) {
    counts.push_back(CountOf(value.number_value()));
  }
  return counts;
}

}  // namespace kumo
