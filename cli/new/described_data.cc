#include "cli/new/described_data.h"

#include "cli/launch/child_process.h"
#include "cli/launch/json_answer.h"
#include "common/base/file.h"
#include "common/settings/option_table.h"

namespace kumo {

Result<DescribedData> DescribeData(const CliEnvironment& environment, const std::string& path) {
  ChildSpec spec;
  spec.command = {JoinPath(environment.binary_directory, "kumo-data"), "describe", path};
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  spec.shows_errors = true;
  std::string output;
  KUMO_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(spec, &output));
  const JsonAnswer answer(output);
  if (end.code != 0 || !answer.read()) {
    return ErrorOf("kumo-data describe", end, answer.Text("error"));
  }
  DescribedData data;
  data.form = answer.Text("form");
  // In the order of the table, as other pages have them.
  const JsonAnswer settings = answer.Object("settings");
  for (const Option& option : OptionTable::Shared().options()) {
    if (settings.Has(option.key)) {
      data.settings.emplace_back(option.name(), settings.Text(option.key));
    }
  }
  data.train_samples = answer.Count("train_samples");
  data.validation_samples = answer.Count("validation_samples");
  data.field = answer.Text("field");
  data.bytes = answer.Flag("bytes");
  data.extents = answer.Counts("extents");
  data.classes = answer.Count("classes");
  data.label_numbers = answer.Count("label_numbers");
  data.label_mean = answer.Number("label_mean");
  data.label_deviation = answer.Number("label_deviation");
  data.objects = answer.Count("objects");
  data.damaged = answer.Count("damaged");
  data.features = answer.Count("features");
  data.masks = answer.Flag("masks");
  for (const JsonAnswer& column : answer.Objects("columns")) {
    data.columns.emplace_back(column.Text("column"), column.Text("use"));
  }
  data.notes = answer.Texts("notes");
  return data;
}

}  // namespace kumo
