// A file in CNTK's text format; the first byte says whether the image's size is told, and whether
// labels are classes, numbers or nothing that matters.
#include <cmath>
#include <cstring>

#include "data/readers/all.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kumo::fuzz::InputFile file;
  if (size < 2) return 0;
  file.Hold(kumo::fuzz::AsText(data + 1, size - 1));
  kumo::ReaderRequest request;
  request.images = file.path();
  request.classes = (data[0] & 4) != 0 ? 0 : 3;
  if ((data[0] & 8) != 0) request.label_stream = "";
  request.limit = data[0] % 4;
  if (data[0] % 2 == 1) request.image_size = {1, 2, 3};
  const auto dataset = kumo::OpenCtf(request);
  if (!dataset.ok()) return 0;
  const kumo::Dataset& set = **dataset;
  kumo::fuzz::Require(set.size() > 0, "a set that is none");
  const auto measured = kumo::MeasureCtf(request);
  kumo::fuzz::Require(measured.ok() && measured->samples == set.size(),
                      "another number of samples");
  kumo::Sample sample(set.fields());
  kumo::fuzz::Require(set.Read(set.size() - 1, &sample).ok(), "a sample that cannot be read");
  for (int f = 0; f < 2; ++f) {
    const kumo::Field& field = set.fields()[f];
    kumo::fuzz::Require(std::ssize(sample.field(f)) == field.bytes(), "another length");
    for (int64_t i = 0; field.type == kumo::NumberType::kFloat32 && i < field.numbers(); ++i) {
      float number = 0;
      std::memcpy(&number, sample.field(f).data() + i * sizeof number, sizeof number);
      kumo::fuzz::Require(std::isfinite(number), "no number");
    }
  }
  if (set.fields()[1].type == kumo::NumberType::kFloat32) return 0;
  int32_t label = -1;
  std::memcpy(&label, sample.field(1).data(), sizeof label);
  kumo::fuzz::Require(label >= 0 && label < 3, "no such class");
  return 0;
}
