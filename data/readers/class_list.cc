#include "data/readers/class_list.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"

namespace kumo {
namespace {

constexpr uint64_t kMaxClassListBytes = 64 << 20;
constexpr size_t kListedClasses = 12;  // in a message

}  // namespace

Result<std::vector<std::string>> ReadClassList(const std::string& path) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kMaxClassListBytes));
  std::vector<std::string> names;
  std::unordered_map<std::string, int64_t> lines;
  int64_t number = 0;
  for (std::string_view rest = WithoutByteOrderMark(text); !rest.empty();) {
    const std::string_view line = Trimmed(TakeLine(&rest));
    ++number;
    if (line.empty()) continue;
    const auto [before, first] = lines.emplace(line, number);
    if (!first) {
      return InvalidArgument(path + ":" + std::to_string(number) + ": \"" + Printable(line) +
                             "\" is also in line " + std::to_string(before->second) +
                             "; remove one of them");
    }
    names.emplace_back(line);
  }
  if (names.empty()) return InvalidArgument(path + ": lists no class; name one in each line");
  return names;
}

Status CheckListed(const std::string& path, std::span<const std::string> names, int classes) {
  if (std::ssize(names) == classes) return OkStatus();
  return InvalidArgument(path + ": lists " + ClassesCounted(names) +
                         ", but data.classes = " + std::to_string(classes) +
                         "; set data.classes = " + std::to_string(names.size()));
}

Status NotTrained(const std::string& where, const std::string& class_name,
                  std::span<const std::string> train_names) {
  return InvalidArgument(where + ": has the class \"" + Printable(class_name, 40) +
                         "\", but the training set has only " + ClassesCounted(train_names) +
                         "; correct the name, remove the class from this set, or add samples of "
                         "it to the training set");
}

std::unordered_map<std::string_view, int32_t> NumbersOfClasses(std::span<const std::string> names) {
  std::unordered_map<std::string_view, int32_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], static_cast<int32_t>(i));
  return numbers;
}

std::string ClassesCounted(std::span<const std::string> names) {
  const std::string count = Counted(std::ssize(names), "class", "classes");
  if (names.empty()) return count;
  std::vector<std::string> printable;
  for (const std::string& name : names.first(std::min(names.size(), kListedClasses))) {
    printable.push_back(Printable(name, 40));
  }
  return count + " (" + Join(printable) + (names.size() > kListedClasses ? ", ...)" : ")");
}

}  // namespace kumo
