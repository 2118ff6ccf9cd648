// A worker that is a member of the job, under its own name, and lies in everything else: its
// messages with other fields, again, too late, not at all, and with messages that no worker sends.
// What it does is read from bytes, so that a fuzzer or a random generator can choose it.
//
// What it may not do is lie about numbers that are its own to compute: a contribution of a
// partition that it has a lease on may hold anything, and nobody else knows better. Such messages
// it sends as they are, or not at all.
//
// One run of a simulated job; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tests/sim/cluster.h"

namespace kumo::sim {

// Choices made by bytes; when there are none left each is the last of its kind, the dullest.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint64_t Below(uint64_t bound);  // requires 0 < bound <= 256
  // A number near `sensible`, or one that is seldom thought of.
  int64_t Wild(int64_t sensible);
  uint64_t Word();

 private:
  uint8_t Byte();
  std::span<const uint8_t> bytes_;
};

// Gives one field, of the message or of one within, another value.
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
  // The same of another partition, with other sums.
  Message OfAnother(Message message);
  bool TellsOwnNumbers(const wire::Header& header) const;

  const int worker_;
  Choices& choices_;
  std::vector<Message> sent_;  // the first of them, to be sent again
  std::set<int> partitions_;   // that it has ever had a lease on
  int forged_ = 0;
};

// A job of two workers and two servers that lasts some rounds, with nothing that partitions carry.
SimSettings JobWithAForger(bool replicas);

// Runs it with worker 1 forging. "" where it ends with the undisturbed bits and figures, or for a
// reason that names that worker; else what is wrong.
std::string ComplaintAboutForging(std::span<const uint8_t> bytes);

}  // namespace kumo::sim
