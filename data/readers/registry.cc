#include "data/readers/registry.h"

#include <array>

#include "data/readers/idx.h"

namespace kumo {
namespace {

constexpr std::array kReaders = {
    Reader{"idx", "IDX images and labels as MNIST has them, plain or gzip'd", OpenIdx, MeasureIdx},
};

}  // namespace

std::span<const Reader> Readers() { return kReaders; }

Result<const Reader*> FindReader(std::string_view name) {
  std::string known;
  for (const Reader& reader : kReaders) {
    if (reader.name == name) return &reader;
    known += (known.empty() ? "" : ", ") + std::string(reader.name);
  }
  return FailedPrecondition("data.reader = " + std::string(name) +
                            ": there is no such reader; choose one of: " + known);
}

}  // namespace kumo
