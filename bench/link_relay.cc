// link_relay: links of a given rate and delay between hosts that are network namespaces
// (bench/links.py). Each host has a TUN device, whose descriptor this program inherits; host i has
// the address 10.77.0.(10 + i). A packet occupies its host's link to the switch, is under way for
// the delay, and occupies the switch's link to the other host. Each link passes on one packet after
// the other at its rate, and drops a packet that would wait longer than its queue lasts.
//
//   link_relay FD...
//
// Reads lines "BITS_PER_SECOND DELAY_SECONDS QUEUE_SECONDS" from its standard input; each holds for
// the packets that come after it. A rate of 0 is unlimited. Before the first line nothing is
// limited. Ends with its input.
//
// The devices hand over segments of up to 64 KiB with a header (virtio_net_hdr), as a kernel's own
// virtual links do: so a fast link takes few system calls.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace {

constexpr size_t kHeader = 10;           // virtio_net_hdr
constexpr size_t kDestination = 16 + 3;  // last byte of the IPv4 destination
constexpr int kFirstHost = 10;           // last byte of host 0's address
constexpr int kPacketsAtOnce = 16;       // read from one host before others have their turn
constexpr size_t kLargest = 65'536 + kHeader;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Packet {
  double due = 0;         // when it is at the next place
  uint64_t number = 0;    // keeps the order of packets with the same time
  bool at_switch = true;  // the next place; else its host
  size_t host = 0;
  size_t size = 0;
  std::unique_ptr<char[]> bytes;
};
struct Later {
  bool operator()(const Packet& a, const Packet& b) const {
    return a.due != b.due ? a.due > b.due : a.number > b.number;
  }
};

class Relay {
 public:
  explicit Relay(std::vector<int> devices)
      : devices_(std::move(devices)), up_free_(devices_.size()), down_free_(devices_.size()) {}

  // Runs until the standard input ends.
  int Run() {
    std::vector<pollfd> polled = {{STDIN_FILENO, POLLIN, 0}};
    for (const int device : devices_) polled.push_back({device, POLLIN, 0});
    while (true) {
      const double wait = under_way_.empty() ? 1 : std::max(0.0, under_way_.top().due - Now());
      const auto whole = static_cast<time_t>(wait);
      const timespec timeout{whole, static_cast<long>((wait - static_cast<double>(whole)) * 1e9)};
      if (ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0 && errno != EINTR) {
        std::perror("link_relay: poll");
        return 1;
      }
      if (polled[0].revents != 0 && !ReadCommand()) return 0;
      for (size_t host = 0; host < devices_.size(); ++host) {
        if (polled[host + 1].revents != 0) Read(host);
      }
      Move();
    }
  }

 private:
  bool ReadCommand() {
    char text[256];
    const ssize_t size = read(STDIN_FILENO, text, sizeof text - 1);
    if (size <= 0) return false;
    text[size] = 0;
    double rate = 0, delay = 0, queue = 0;
    if (std::sscanf(text, "%lf %lf %lf", &rate, &delay, &queue) != 3) {
      std::fprintf(stderr, "link_relay: not three numbers: %s", text);
      return false;
    }
    seconds_per_byte_ = rate > 0 ? 8 / rate : 0;
    delay_ = delay;
    queue_ = queue;
    return true;
  }

  void Read(size_t host) {
    for (int i = 0; i < kPacketsAtOnce; ++i) {
      const ssize_t size = read(devices_[host], buffer_.get(), kLargest);
      if (size < static_cast<ssize_t>(kHeader + kDestination + 1)) return;
      const char* const packet = buffer_.get() + kHeader;
      const auto target =
          static_cast<size_t>(static_cast<unsigned char>(packet[kDestination]) - kFirstHost);
      if ((packet[0] >> 4 & 15) != 4 || target >= devices_.size()) continue;
      const double now = Now();
      double& free = up_free_[host];
      const double begin = std::max(now, free);
      if (begin - now > queue_) continue;
      const auto bytes = static_cast<size_t>(size);
      free = begin + seconds_per_byte_ * static_cast<double>(bytes - kHeader);
      Packet moved{free + delay_, ++packets_, true,
                   target,        bytes,      std::unique_ptr<char[]>(new char[bytes])};
      std::copy_n(buffer_.get(), bytes, moved.bytes.get());
      under_way_.push(std::move(moved));
    }
  }

  // Carries the packets that are due one place further. The last bit of a packet leaves the switch
  // when it arrives there, if the link is free: both links pass it on at the same time.
  void Move() {
    const double now = Now();
    while (!under_way_.empty() && under_way_.top().due <= now) {
      Packet packet = std::move(const_cast<Packet&>(under_way_.top()));
      under_way_.pop();
      if (packet.at_switch) {
        double& free = down_free_[packet.host];
        if (free - packet.due > queue_) continue;
        free = std::max(packet.due,
                        free + seconds_per_byte_ * static_cast<double>(packet.size - kHeader));
        packet.at_switch = false;
        packet.due = free;
        if (free > now) {
          under_way_.push(std::move(packet));
          continue;
        }
      }
      // A full device loses the packet, as a network does.
      (void)!write(devices_[packet.host], packet.bytes.get(), packet.size);
    }
  }

  const std::vector<int> devices_;
  std::vector<double> up_free_, down_free_;  // by host: when its link has passed on all it has
  std::priority_queue<Packet, std::vector<Packet>, Later> under_way_;
  const std::unique_ptr<char[]> buffer_{new char[kLargest]};
  double seconds_per_byte_ = 0, delay_ = 0, queue_ = 1;
  uint64_t packets_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> devices;
  for (int i = 1; i < argc; ++i) devices.push_back(std::atoi(argv[i]));
  if (devices.empty()) {
    std::fprintf(stderr, "usage: link_relay FD...\n");
    return 64;
  }
  return Relay(std::move(devices)).Run();
}
