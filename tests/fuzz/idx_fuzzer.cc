// Images and labels as IDX files, packed or not. The first two bytes say where the labels begin.
#include <vector>

#include "data/readers/all.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kumo::fuzz::InputFile images, labels;
  if (size < 3) return 0;
  const std::string_view both = kumo::fuzz::AsText(data + 2, size - 2);
  const size_t split = (data[0] | size_t{data[1]} << 8) % both.size();
  images.Hold(both.substr(0, split));
  labels.Hold(both.substr(split));
  kumo::ReaderRequest request{images.path(), labels.path(), 10, size % 3 == 0 ? 2 : 0};
  const auto dataset = kumo::OpenIdx(request);
  if (!dataset.ok()) return 0;
  const kumo::Dataset& set = **dataset;
  kumo::fuzz::Require(set.size() > 0 && set.classes() <= 10, "a set that is none");
  kumo::Sample sample(set.fields());
  kumo::fuzz::Require(set.Read(set.size() - 1, &sample).ok(), "a sample that cannot be read");
  kumo::fuzz::Require(std::ssize(sample.field(0)) == set.fields()[0].bytes(), "another image");
  int32_t label = -1;
  std::memcpy(&label, sample.field(1).data(), sizeof label);
  kumo::fuzz::Require(label >= 0 && label < 10, "no such class");
  return 0;
}
