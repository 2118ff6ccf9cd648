#include "data/finders/finders.h"

namespace kumo {

FoundDataset FindText(const std::string& folder, const std::string& name) {
  FoundDataset found;
  found.data.reader = DataReader::kText;
  found.data.directory = folder;
  found.data.text = name;
  found.form = "a text";
  return found;
}

}  // namespace kumo
