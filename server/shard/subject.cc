#include "server/shard/subject.h"

namespace kumo {

std::string SubjectOf(const wire::Header& header) {
  return "partition " + std::to_string(header.partition()) + ", round " +
         std::to_string(header.round()) + ", chunk " + std::to_string(header.chunk());
}

Status NotLeased(const wire::Header& header) {
  return Unavailable(SubjectOf(header) + ": not leased to the sender");
}

}  // namespace kumo
