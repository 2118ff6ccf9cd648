#include "common/tensor_files/npy_header.h"

#include <cstring>
#include <optional>
#include <utility>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/tensor_files/tensor_file.h"

namespace kumo {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kNpyAlignment = 64;

// Scanner of the dictionary.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Consumes `word` and the blanks before it, if they come next.
  bool Take(std::string_view word) {
    const size_t blanks = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(blanks == rest_.npos ? rest_.size() : blanks);
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool TakeQuoted(std::string* text) {
    const char quote = Take("'") ? '\'' : Take("\"") ? '"' : '\0';
    const size_t end = quote == '\0' ? rest_.npos : rest_.find(quote);
    if (end == rest_.npos) return false;
    *text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeShape(std::vector<int64_t>* shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      Take("");
      const std::optional<int64_t> extent = TakeNumber<int64_t>(&rest_);
      if (!extent || shape->size() == kMostExtents) return false;
      shape->push_back(*extent);
      Take("L");  // suffix of long integers in Python 2
      if (!Take(",") && !rest_.starts_with(')')) return false;
    }
    return true;
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::string NpyHeaderBytes(std::span<const int64_t> shape) {
  std::string extents;
  for (const int64_t extent : shape) {
    extents += (extents.empty() ? "" : " ") + std::to_string(extent) + ",";
  }
  if (shape.size() > 1) extents.pop_back();
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + extents + "), }";
  const size_t all =
      (kNpyPrefix + text.size() + 1 + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment;
  text.resize(all - kNpyPrefix - 1, ' ');
  text += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}

Result<NpyPrefix> ParseNpyPrefix(std::span<const std::byte, kNpyPrefix> bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return DataLoss("is no .npy file");
  }
  const int version = at(kMagic.size());
  if (version < 1 || version > 3) {
    return DataLoss("is a .npy file of the unknown version " + std::to_string(version));
  }
  NpyPrefix prefix;
  prefix.length = at(8) + (size_t{at(9)} << 8);
  // From version 2 on the length has four bytes; the upper two come next.
  if (version > 1) prefix.more = 2;
  return prefix;
}

Result<NpyHeader> ParseNpyHeader(std::string_view dictionary) {
  const Status none = DataLoss("has no valid numpy header: " + Printable(dictionary));
  NpyHeader header;
  int seen = 0;  // one bit per key
  Scanner scanner(dictionary);
  if (!scanner.Take("{")) return none;
  while (!scanner.Take("}")) {
    std::string key;
    if (!scanner.TakeQuoted(&key) || !scanner.Take(":")) return none;
    int bit = 0;
    if (key == "descr") {
      bit = 1;
      // Structured types are described by a list.
      if (!scanner.TakeQuoted(&header.descr)) return none;
    } else if (key == "fortran_order") {
      bit = 2;
      header.fortran_order = scanner.Take("True");
      if (!header.fortran_order && !scanner.Take("False")) return none;
    } else if (key == "shape") {
      bit = 4;
      if (!scanner.TakeShape(&header.shape)) return none;
    }
    if (bit == 0 || (seen & bit) != 0) return none;
    seen |= bit;
    if (!scanner.Take(",") && !scanner.Take("")) return none;
  }
  return seen == 7 ? Result<NpyHeader>(std::move(header)) : none;
}

}  // namespace kumo
