// Forger: a worker that is a member of the job under its own name, and lies in everything else. It
// changes fields of its messages, repeats, delays and drops them, and sends messages that no worker
// sends. Its choices are read from bytes, so that a fuzzer or a random generator can make them.
//
// It does not change elements that are its own to compute: no other process could notice a wrong
// contribution to a partition that it has leased. Such messages it sends unchanged, or not at all.
//
// One run of a simulated job; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tests/sim/cluster.h"

namespace kumo::sim {

// Choices read from bytes. Without bytes left, each choice is the last of its kind, the least
// disturbing one.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint64_t Below(uint64_t bound);  // requires 0 < bound <= 256
  // An integer near `sensible`, or an extreme one.
  int64_t Wild(int64_t sensible);
  uint64_t Word();

 private:
  uint8_t Byte();
  std::span<const uint8_t> bytes_;
};

// Changes the value of one field, of the message or of a message in it.
void ForgeField(Choices* choices, google::protobuf::Message* message);

class Forger : public Interference {
 public:
  // choices: borrowed for life.
  Forger(int worker, Choices* choices) : worker_(worker), choices_(*choices) {}

  std::vector<Message> FromWorker(int worker, int server, Message message) override;
  bool ToWorker(int server, int worker, const Message& message) override;

  int forged() const { return forged_; }  // messages so far

 private:
  Message Forged(const Message& message);
  // The same message for another partition, with other sums.
  Message OfAnother(Message message);
  bool TellsOwnNumbers(const wire::Header& header) const;

  const int worker_;
  Choices& choices_;
  std::vector<Message> sent_;  // the first of them, to be sent again
  std::set<int> partitions_;   // that it has ever had a lease on
  int forged_ = 0;
};

// A job of two workers and two servers over some rounds, whose partitions carry no state.
SimSettings JobWithAForger(bool replicas);

// Runs the job with worker 1 as the forger. Returns "" if it ends with the undisturbed bits and
// figures, or with an error that names the forger; else the difference.
std::string ComplaintAboutForging(std::span<const uint8_t> bytes);

}  // namespace kumo::sim
