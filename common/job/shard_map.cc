#include "common/job/shard_map.h"

#include <algorithm>

#include <glog/logging.h>

#include "common/settings/experiment.h"

namespace kumo {
namespace {
// Stretches of a fragment in a group: up to this number of servers, each holds some of every
// fragment.
constexpr int64_t kStretchesOfFragment = 16;
}  // namespace

ShardMap::ShardMap(const ParameterLayout& layout, int servers, int64_t chunk_bytes, int64_t unit,
                   int fragments) {
  CHECK_GE(servers, 1);
  CHECK_LE(servers, kMaxServers);
  CHECK_GT(chunk_bytes, 0);
  int64_t total = 0;
  for (const StepGroup& group : layout.groups()) total += group.range.size();

  // Small networks are cut finer than chunk_bytes, so that every server has its share.
  const int64_t share = (total + servers - 1) / servers;
  const int64_t asked = std::min(chunk_bytes / static_cast<int64_t>(sizeof(float)), share);
  // A network that a peer describes must not make a table without bound.
  const int64_t wanted = std::max(asked, total / kMostChunks);
  const auto units = [unit](int64_t numbers) {
    return std::max(unit, (numbers + unit - 1) / unit * unit);
  };
  const int64_t length = units(wanted);

  int64_t before = 0;  // floats in the chunks so far
  for (const StepGroup& group : layout.groups()) {
    const Range range = group.range;
    const int64_t stretches_of_group = fragments * kStretchesOfFragment;
    const int64_t shortest = std::max(range.size() / stretches_of_group, total / kMostChunks);
    const int64_t stretch = units(fragments == 1 ? range.size() : shortest);
    for (int64_t begin = range.begin; begin < range.end;) {
      const int64_t stretches = (begin - range.begin) / stretch;
      const int64_t stretch_end = range.begin + (stretches + 1) * stretch;
      Chunk chunk;
      chunk.index = static_cast<int>(chunks_.size());
      chunk.segment = group.segment;
      chunk.factors = group.factors;
      chunk.range = {begin, std::min({begin + length, stretch_end, range.end})};
      chunk.fragment = static_cast<int>(stretches % fragments);
      // The server whose share of the bytes the chunk's middle falls into; chunk 0 on server 0.
      const int64_t middle = before + chunk.range.size() / 2;
      chunk.server = before == 0 ? 0 : static_cast<int>(middle * servers / total);
      before += chunk.range.size();
      begin = chunk.range.end;
      chunks_.push_back(chunk);
    }
  }
  first_chunk_.assign(servers + 1, static_cast<int>(chunks_.size()));
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    first_chunk_[chunk->server] = chunk->index;
  }
  // A server without a chunk has the empty range that ends where the next server begins.
  for (int server = servers - 1; server >= 0; --server) {
    first_chunk_[server] = std::min(first_chunk_[server], first_chunk_[server + 1]);
  }
}

std::span<const Chunk> ShardMap::ServerChunks(int server) const {
  const int first = FirstChunk(server);
  return std::span(chunks_).subspan(first, FirstChunk(server + 1) - first);
}

Range ShardMap::ServerRange(int server) const {
  const auto chunks = ServerChunks(server);
  if (chunks.empty()) return {};
  return {chunks.front().range.begin, chunks.back().range.end};
}

int64_t ShardMap::ServerBytes(int server) const {
  int64_t floats = 0;
  for (const Chunk& chunk : ServerChunks(server)) floats += chunk.range.size();
  return floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace kumo
