#include "cli/launch/placement.h"

#include <algorithm>

#include "common/base/address.h"

namespace kumo {

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
                                ", which is on none of the hosts; name it among them, or --set "
                                "cluster.servers= to have addresses picked");
    }
    placement.servers.push_back(host->name);
    placement.binds.push_back(Address{Address::Kind::kTcp, "*", address.port, ""}.ToString());
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
