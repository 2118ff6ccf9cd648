#include "cli/new/new_from_data.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "cli/new/experiment_lines.h"
#include "cli/new/task.h"
#include "common/base/text.h"
#include "common/settings/config_file.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// The first one that fits.
constexpr const NewTask* kTasks[] = {&kTextTask, &kDetectorTask, &kMasksTask, &kImagesTask,
                                     &kNumbersTask};

const NewTask& TaskOf(const DescribedData& data) {
  return **std::ranges::find_if(kTasks, [&](const NewTask* task) { return task->fits(data); });
}

// Reason of a setting of [data]; "": none.
std::string ReasonOf(std::string_view key, std::string_view value, const NewTask& task) {
  if (key == "validation_share") return "no validation set was found";
  if (key == "image_size") return task.scaling;
  if (key == "photometric") return "SSD's augmentation, in its order";
  if (key == "crop_area") return "random crops of half to all of the area";
  if (key == "mean" || key == "std") return "of the training images, after scaling to 0 .. 1";
  if (key == "columns") return "FIELD:KIND:COLUMNS";
  return key == "classes" && value == "0" ? "labels are numbers" : "";
}

}  // namespace

int64_t EpochsFor(int64_t visits, int64_t samples, int64_t least, int64_t most) {
  return std::clamp<int64_t>(visits / std::max<int64_t>(1, samples) + 1, least, most);
}

std::string SizesText(const DescribedData& data) {
  std::string shape;
  for (const int64_t extent : data.extents) {
    shape += (shape.empty() ? "" : "x") + std::to_string(extent);
  }
  if (data.extents.size() == 1) shape = Counted(data.extents[0], TaskOf(data).element);
  if (data.bytes && data.features > 0) shape += " and " + Counted(data.features, "number");
  return Counted(data.train_samples, "training sample") + " of " + shape + ", " +
         Counted(data.validation_samples, "validation sample");
}

std::string ExperimentFor(const std::string& name, const DescribedData& data) {
  const NewTask& task = TaskOf(data);
  const int64_t epochs = task.epochs(data.train_samples);
  ExperimentLines lines;
  lines.Section("job");
  lines.Set("epochs", epochs);
  lines.Section("network");
  lines.Set("file", name + ".pbtxt");
  lines.Section("data");
  for (const auto& [key, value] : data.settings) {
    const Option* const option = OptionTable::Shared().Find("data." + key);
    const bool is_path = option != nullptr && option->base != PathBase::kNone;
    lines.Set(key, Quoted(is_path ? WithoutVariables(value) : value), ReasonOf(key, value, task));
  }
  if (task.set_data != nullptr) task.set_data(data, &lines);
  task.set_training(data, epochs, &lines);
  return "# " + data.form + ": " + SizesText(data) +
         ".\n# Made by kumo new --data; its network is "
         "in " +
         name + ".pbtxt. kumo options lists all settings.\n" + lines.text();
}

std::string ModelFor(const DescribedData& data) { return TaskOf(data).model; }

std::string NetworkFor(const std::string& name, const DescribedData& data,
                       const std::string& model) {
  const NewTask& task = TaskOf(data);
  if (!task.network) return model;
  std::string of_network = name;  // without '-', which the names of networks lack
  std::ranges::replace(of_network, '-', '_');
  return task.network(of_network, data, model);
}

}  // namespace kumo
