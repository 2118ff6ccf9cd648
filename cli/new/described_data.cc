#include "cli/new/described_data.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "cli/launch/child_process.h"
#include "common/base/file.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

using google::protobuf::Struct;

class Answer {
 public:
  // "", 0 and none if the output is no JSON object.
  explicit Answer(const std::string& output) {
    read_ = google::protobuf::util::JsonStringToMessage(output, &object_).ok();
  }

  std::string Text(const std::string& name) const { return ValueOf(name).string_value(); }
  int64_t Number(const std::string& name) const {
    return static_cast<int64_t>(ValueOf(name).number_value());
  }
  double Real(const std::string& name) const { return ValueOf(name).number_value(); }
  bool Flag(const std::string& name) const { return ValueOf(name).bool_value(); }
  std::vector<int64_t> Numbers(const std::string& name) const {
    std::vector<int64_t> numbers;
    for (const auto& value : List(name).values()) {
      numbers.push_back(static_cast<int64_t>(value.number_value()));
    }
    return numbers;
  }
  const google::protobuf::ListValue& List(const std::string& name) const {
    return ValueOf(name).list_value();
  }
  const Struct& Object(const std::string& name) const { return ValueOf(name).struct_value(); }
  bool read() const { return read_; }

 private:
  const google::protobuf::Value& ValueOf(const std::string& name) const {
    const auto field = object_.fields().find(name);
    return field == object_.fields().end() ? google::protobuf::Value::default_instance()
                                           : field->second;
  }

  Struct object_;
  bool read_ = false;
};

}  // namespace

Result<DescribedData> DescribeData(const CliEnvironment& environment, const std::string& path) {
  ChildSpec spec;
  spec.command = {JoinPath(environment.binary_directory, "kumo-data"), "describe", path};
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  spec.shows_errors = true;
  std::string output;
  KUMO_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(spec, &output));
  const Answer answer(output);
  if (end.code != 0 || !answer.read()) {
    return ErrorOf("kumo-data describe", end, answer.Text("error"));
  }
  DescribedData data;
  data.form = answer.Text("form");
  // In the order of the table, as other pages have them.
  for (const Option& option : OptionTable::Shared().options()) {
    const auto& settings = answer.Object("settings").fields();
    const auto found = settings.find(option.key);
    if (found != settings.end()) {
      data.settings.emplace_back(option.name(), found->second.string_value());
    }
  }
  data.train_samples = answer.Number("train_samples");
  data.validation_samples = answer.Number("validation_samples");
  data.field = answer.Text("field");
  data.bytes = answer.Flag("bytes");
  data.extents = answer.Numbers("extents");
  data.classes = answer.Number("classes");
  data.label_numbers = answer.Number("label_numbers");
  data.label_mean = answer.Real("label_mean");
  data.label_deviation = answer.Real("label_deviation");
  data.objects = answer.Number("objects");
  data.damaged = answer.Number("damaged");
  data.features = answer.Number("features");
  data.masks = answer.Flag("masks");
  for (const auto& value : answer.List("columns").values()) {
    const auto& column = value.struct_value().fields();
    data.columns.emplace_back(column.at("column").string_value(), column.at("use").string_value());
  }
  for (const auto& value : answer.List("notes").values()) {
    data.notes.push_back(value.string_value());
  }
  return data;
}

}  // namespace kumo
