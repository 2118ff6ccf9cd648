#include "common/base/text_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace kumo {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<std::string> ReadTextFile(const std::string& path, uint64_t most_mib) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return NotFound("is a directory");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument("is a pipe or a device, not a file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(std::generic_category().message(errno));
  std::string text;
  char buffer[1 << 14];
  while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > most_mib << 20) {
      return InvalidArgument("has more than " + std::to_string(most_mib) + " MiB");
    }
  }
  if (file.bad()) return Unavailable("reading failed");
  if (const size_t zero = text.find('\0'); zero != std::string::npos) {
    return InvalidArgument("is no text in UTF-8: its byte " + std::to_string(zero) + " is 0");
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace kumo
