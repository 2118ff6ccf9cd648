#include "common/telemetry/log_lines.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kumo {

Status ForEachLogLine(ReadableFile* log, const std::function<Status(const std::string&)>& visit) {
  std::vector<char> piece(kLongestLogLine);
  std::string line;
  bool too_long = false;
  for (uint64_t at = 0; at < log->size();) {
    const size_t n = std::min<uint64_t>(piece.size(), log->size() - at);
    KUMO_RETURN_IF_ERROR(log->Read(at, std::as_writable_bytes(std::span(piece).first(n))));
    at += n;
    std::string_view rest(piece.data(), n);
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      const std::string_view part = rest.substr(0, end);
      too_long = too_long || line.size() + part.size() > kLongestLogLine;
      if (!too_long) line += part;
      if (end == std::string_view::npos) break;
      if (!too_long) KUMO_RETURN_IF_ERROR(visit(line));
      line.clear();
      too_long = false;
      rest.remove_prefix(end + 1);
    }
  }
  return OkStatus();
}

}  // namespace kumo
