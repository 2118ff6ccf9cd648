// A file of tensors: the first byte says in which format.
#include <map>
#include <vector>

#include "common/tensor_files/tensor_file.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kumo::fuzz::InputFile file;
  if (size < 1) return 0;
  file.Hold(kumo::fuzz::AsText(data + 1, size - 1));
  constexpr int64_t kMost = 1 << 12;
  const auto format =
      data[0] % 2 == 0 ? kumo::TensorFormat::kSafetensors : kumo::TensorFormat::kNpz;
  std::map<std::string, std::vector<float>> held;
  kumo::PosixFileSystem files;
  const kumo::Status read = kumo::ReadTensorFile(
      files, file.path(), format,
      [&](const kumo::FileTensor& tensor) -> kumo::Result<std::span<float>> {
        int64_t numbers = 1;
        for (const int64_t extent : tensor.shape) numbers *= extent;
        kumo::fuzz::Require(numbers == tensor.size, "another size than the shape's");
        kumo::fuzz::Require(!tensor.name.empty() && !held.contains(tensor.name),
                            "a name that is none, or twice there");
        std::vector<float>& to = held[tensor.name];
        if (!tensor.unreadable.empty() || tensor.size > kMost) return std::span<float>();
        to.resize(tensor.size);
        return std::span(to);
      });
  if (!read.ok()) {
    kumo::fuzz::Require(read.message().find(file.path()) != std::string::npos,
                        "an error that does not name the file");
  }
  return 0;
}
