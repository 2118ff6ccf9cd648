// The time of a job that a server lives in, as server 0 says: what belongs to another one counts
// for nothing.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

struct Generation {
  // 0: not welcomed to one yet.
  uint32_t number = 0;
  // The generation in which the job began or last went back. In a later one what is lost was kept
  // twice, and everybody else goes on where it is.
  uint32_t since = 0;
  // The version that the job began with then: 0, or that of the checkpoint `restore`.
  int64_t start_version = 0;
  std::string restore;  // a checkpoint's name, or ""
  // It is not known yet what the generation starts from, or its number is not durable: nobody can
  // be welcomed.
  bool choosing = false;
};

}  // namespace kumo
