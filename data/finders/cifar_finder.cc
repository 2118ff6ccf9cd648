#include "data/finders/finders.h"

#include <algorithm>
#include <filesystem>

#include "common/base/file.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

bool HasName(const std::vector<std::string>& names, const char* name) {
  return std::ranges::binary_search(names, name);
}

}  // namespace

bool IsCifar(const std::vector<std::string>& names) {
  return HasName(names, "data_batch_1.bin") ||
         (HasName(names, "train.bin") && HasName(names, "test.bin"));
}

FoundDataset FindCifar(const std::string& folder, const std::vector<std::string>& names) {
  const bool fine = !HasName(names, "data_batch_1.bin");
  FoundDataset found;
  found.data.reader = DataReader::kCifar;
  found.data.directory = fs::path(folder).parent_path().string();
  const std::string name = fs::path(folder).filename().string();
  found.data.train_images = fine ? JoinPath(name, "train.bin") : name;
  const char* const test = fine ? "test.bin" : "test_batch.bin";
  found.data.validation_images = HasName(names, test) ? JoinPath(name, test) : "";
  found.data.classes = fine ? 100 : 10;
  found.data.flip = true;
  found.data.crop_pad = 4;
  found.form = fine ? "CIFAR-100" : "CIFAR-10";
  return found;
}

}  // namespace kumo
