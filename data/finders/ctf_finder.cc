#include "data/finders/finders.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <tuple>

#include "common/base/file.h"
#include "common/base/text.h"
#include "data/readers/all.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

constexpr int64_t kMostCountedClasses = 100;  // labels above are numbers

// A stream of CNTK's text format in the first sequence.
struct NamedStream {
  std::string name;
  int64_t values = 0;
  bool sparse = false;
};

// Adds the streams of a line that begins with '|', each name once.
void AddStreams(std::string_view line, std::vector<NamedStream>* streams) {
  while (!line.empty()) {
    line.remove_prefix(1);  // '|'
    const std::string_view stream = line.substr(0, line.find('|'));
    line.remove_prefix(stream.size());
    const std::string_view name = stream.substr(0, stream.find_first_of(" \t\r"));
    if (name.empty() || name.starts_with('#')) continue;
    if (std::ranges::find(*streams, name, &NamedStream::name) != streams->end()) continue;
    int64_t values = 0;
    for (size_t at = name.size(); at < stream.size();) {
      at = stream.find_first_not_of(" \t\r", at);
      if (at == stream.npos) break;
      ++values;
      at = std::min(stream.find_first_of(" \t\r", at), stream.size());
    }
    streams->push_back({std::string(name), values, stream.find(':') != stream.npos});
  }
}

// The streams of the first sequence: of the lines until two streams are known, and of those behind
// them with the same number.
std::vector<NamedStream> StreamsOf(std::string_view start) {
  constexpr size_t kNeeded = 2;  // numbers and labels
  std::vector<NamedStream> streams;
  std::string_view sequence;
  while (!start.empty()) {
    const std::string_view line = start.substr(0, start.find('\n'));
    start.remove_prefix(std::min(line.size() + 1, start.size()));
    const std::string_view number = line.substr(0, line.find_first_not_of("0123456789"));
    if (streams.size() >= kNeeded && (number.empty() || number != sequence)) break;
    sequence = number;
    AddStreams(line.substr(std::min(line.find('|'), line.size())), &streams);
  }
  return streams;
}

// The number of classes that labels in numbers stand for; 0 if they are numbers.
int ClassesOfNumbers(const Dataset& dataset) {
  const int64_t width = dataset.fields()[kLabel].numbers();
  bool one_hot = width > 1, classes = width == 1;
  std::set<float> seen;
  (void)ForEachSample(dataset, dataset.size(), [&](const Sample& sample) {
    std::vector<float> label(width);
    std::memcpy(label.data(), sample.field(kLabel).data(), width * sizeof(float));
    one_hot &= std::ranges::count(label, 1.0f) == 1 && std::ranges::count(label, 0.0f) == width - 1;
    const float number = label[0];
    classes &= number >= 0 && number < kMostCountedClasses && number == std::floor(number);
    if (classes) seen.insert(number);
  });
  if (one_hot) return static_cast<int>(width);
  // Counts and ages are whole too, but leave gaps.
  const bool dense =
      classes && seen.size() > 1 && static_cast<int64_t>(*seen.rbegin()) + 1 == std::ssize(seen);
  return dense ? static_cast<int>(seen.size()) : 0;
}

}  // namespace

bool IsCtf(std::string_view start) {
  const size_t mark = start.find_first_not_of("0123456789 \t\r\n");
  return mark != std::string::npos && start[mark] == '|';
}

Result<FoundDataset> FindCtf(const std::string& folder, const std::vector<std::string>& names) {
  FoundDataset found;
  Experiment::Data& data = found.data;
  data.reader = DataReader::kCtf;
  data.directory = folder;
  std::tie(data.train_images, data.validation_images) = PartsOf(names);
  const std::string path = JoinPath(folder, data.train_images);
  KUMO_ASSIGN_OR_RETURN(const std::string start, StartOf(path));
  const auto streams = StreamsOf(start);
  if (streams.size() < 2) {
    return InvalidArgument(path + ":1: has " + Counted(std::ssize(streams), "stream", "streams") +
                           ", but needs one of numbers and one of labels");
  }
  const auto longer = std::ranges::max_element(streams, {}, &NamedStream::values);
  const auto named = std::ranges::find(streams, "features", &NamedStream::name);
  data.ctf_features = named == streams.end() ? longer->name : named->name;
  const auto label = std::ranges::find_if(
      streams, [&](const auto& stream) { return stream.name != data.ctf_features; });
  data.ctf_labels = label->name;
  ReaderRequest request;
  request.images = path;
  request.image_stream = data.ctf_features;
  request.label_stream = data.ctf_labels;
  // Sparse labels name a class, and their largest one gives the number of classes.
  if (label->sparse) request.classes = kMostDataClasses;
  KUMO_ASSIGN_OR_RETURN(const auto dataset, OpenCtf(request));
  data.classes = label->sparse ? std::max(2, std::ranges::max(dataset->SampleClasses()) + 1)
                               : ClassesOfNumbers(*dataset);
  found.form =
      "CNTK's text format, " + std::to_string(dataset->fields()[kImage].numbers()) +
      " numbers a sample, " +
      (data.classes > 0 ? std::to_string(data.classes) + " classes" : "labels are numbers");
  return found;
}

}  // namespace kumo
