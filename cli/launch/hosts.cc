#include "cli/launch/hosts.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <utility>

#include "common/base/address.h"
#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/settings/option_value.h"

namespace kumo {

namespace {

constexpr size_t kMostHosts = 4096;
constexpr int kMostSlots = 1024;
constexpr uint64_t kMostMib = 1;
constexpr std::string_view kBlanks = " \t\r\n";

// True if the whole text is a number up to `most`.
bool ReadNumber(std::string_view text, int most, int* number) {
  *number = ParseNumber<int>(text).value_or(-1);
  return *number >= 0 && *number <= most;
}

// Splits at commas outside of brackets.
std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(Trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

Status Wrong(std::string_view part, const std::string& what) {
  return InvalidArgument("\"" + Printable(part) + "\": " + what);
}

// A name is part of ssh's command line: a name with a leading '-' would be an option of ssh.
Status CheckName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  const size_t at = name.find('@');
  for (const std::string_view half : {name.substr(0, at), name.substr(at + 1)}) {
    if (half.empty() || half.size() > 253 || half.front() == '-' ||
        !std::ranges::all_of(half, allowed)) {
      return Wrong(name, "a host is NAME or USER@NAME, of letters, digits, '.', '-' and '_'");
    }
    if (at == std::string_view::npos) break;
  }
  return OkStatus();
}

Status AddName(std::string name, int slots, std::vector<Host>* hosts) {
  KUMO_RETURN_IF_ERROR(CheckName(name));
  if (hosts->size() == kMostHosts) return InvalidArgument("more than 4096 hosts");
  hosts->push_back({std::move(name), slots});
  return OkStatus();
}

// Expands "01-04", keeping the width: "01" to "04".
Status AddRange(const std::string& before, std::string_view range, const std::string& behind,
                int slots, std::vector<Host>* hosts) {
  const size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == std::string_view::npos ? from : range.substr(dash + 1);
  constexpr int kHighest = 99'999'999;
  int first = 0, last = 0;
  if (!ReadNumber(from, kHighest, &first) || !ReadNumber(to, kHighest, &last) || last < first) {
    return Wrong(range, "a range is two ascending numbers: 01-04");
  }
  for (int i = first; i <= last; ++i) {
    std::string number = std::to_string(i);
    if (number.size() < from.size()) number.insert(0, from.size() - number.size(), '0');
    KUMO_RETURN_IF_ERROR(AddName(before + number + behind, slots, hosts));
  }
  return OkStatus();
}

// Parses one part of a list: "me@node[01-04,07]:2".
Status AddPart(std::string_view part, std::vector<Host>* hosts) {
  std::string_view name = part;
  int slots = 1;
  const size_t colon = part.rfind(':');
  if (colon != std::string_view::npos) {
    name = part.substr(0, colon);
    if (!ReadNumber(part.substr(colon + 1), kMostSlots, &slots) || slots == 0) {
      return Wrong(part, "after the colon comes the number of workers, 1 .. 1024");
    }
  }
  const size_t open = name.find('['), close = name.find(']');
  if (open == std::string_view::npos) return AddName(std::string(name), slots, hosts);
  if (close == std::string_view::npos || close < open) return Wrong(part, "']' is missing");
  const std::string before(name.substr(0, open)), behind(name.substr(close + 1));
  for (const std::string_view range : Split(name.substr(open + 1, close - open - 1))) {
    KUMO_RETURN_IF_ERROR(AddRange(before, range, behind, slots, hosts));
  }
  return OkStatus();
}

Status CheckAll(const std::vector<Host>& hosts) {
  if (hosts.empty()) return InvalidArgument("the list has no host");
  std::set<std::string> seen;
  for (const Host& host : hosts) {
    if (!seen.insert(AddressOf(host)).second) {
      return Wrong(host.name, "occurs twice; for more workers on it write " + host.name + ":2");
    }
  }
  return OkStatus();
}

// Parses one line of a host file, without its comment.
Status AddLine(std::string_view line, std::vector<Host>* hosts) {
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  Host host{std::string(line.substr(0, end)), 1};
  const std::string_view rest = Trimmed(line.substr(end));
  constexpr std::string_view kSlots = "slots=";
  const bool known =
      rest.empty() ||
      (rest.starts_with(kSlots) &&
       ReadNumber(rest.substr(kSlots.size()), kMostSlots, &host.slots) && host.slots > 0);
  if (!known) return Wrong(rest, "only slots=N, 1 .. 1024, may follow a host");
  return AddName(std::move(host.name), host.slots, hosts);
}

}  // namespace

std::string AddressOf(const Host& host) { return host.name.substr(host.name.find('@') + 1); }

Result<std::vector<Host>> ParseHosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string_view part : Split(text)) KUMO_RETURN_IF_ERROR(AddPart(part, &hosts));
  KUMO_RETURN_IF_ERROR(CheckAll(hosts));
  return hosts;
}

Result<std::vector<Host>> ReadHostFile(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path, kMostMib);
  if (!text.ok()) return text.status().WithContext(path);
  std::vector<Host> hosts;
  std::istringstream lines(*text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view entry = Trimmed(std::string_view(line).substr(0, line.find('#')));
    if (entry.empty()) continue;
    const Status added = AddLine(entry, &hosts);
    KUMO_RETURN_IF_ERROR(added.WithContext(path + ":" + std::to_string(number)));
  }
  KUMO_RETURN_IF_ERROR(CheckAll(hosts).WithContext(path));
  return hosts;
}

std::vector<std::string> ServerAddresses(const std::vector<Host>& hosts, int servers, int port) {
  std::vector<std::string> addresses;
  const int count = static_cast<int>(hosts.size());
  for (int i = 0; i < servers; ++i) {
    const Address address{Address::Kind::kTcp, AddressOf(hosts[i % count]), port + i / count, ""};
    addresses.push_back(address.ToString());
  }
  return addresses;
}

Result<HostPlacement> Place(const std::vector<Host>& hosts, const std::vector<std::string>& servers,
                            int workers) {
  HostPlacement placement;
  for (const std::string& text : servers) {
    KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    const auto host = std::ranges::find(hosts, address.host, AddressOf);
    if (address.kind != Address::Kind::kTcp || host == hosts.end()) {
      return FailedPrecondition("cluster.servers names " + text +
                                ", which is not among the hosts; add it to them, or let kumo pick "
                                "addresses with --set cluster.servers=");
    }
    placement.servers.push_back(host->name);
    const bool loopback = IsLoopbackHost(address.host);
    const auto other = std::ranges::find_if(
        hosts, [](const Host& one) { return !IsLoopbackHost(AddressOf(one)); });
    if (loopback && other != hosts.end()) {
      return FailedPrecondition("a server at " + text + " cannot be reached from " + other->name +
                                ": " + address.host +
                                " is each host's own address; give the host by the name that the "
                                "other hosts know");
    }
    const std::string bind = loopback ? address.host : "*";
    placement.binds.push_back(Address{Address::Kind::kTcp, bind, address.port, ""}.ToString());
  }
  while (static_cast<int>(placement.workers.size()) < workers) {
    int most = 0;
    for (const Host& host : hosts) most = std::max(most, host.slots);
    for (int slot = 0; slot < most; ++slot) {
      for (const Host& host : hosts) {
        const bool full = static_cast<int>(placement.workers.size()) == workers;
        if (slot < host.slots && !full) placement.workers.push_back(host.name);
      }
    }
  }
  return placement;
}

}  // namespace kumo
