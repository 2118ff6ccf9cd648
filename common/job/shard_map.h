// Shard map: the server that holds each part of the flat parameter vector.
//
// Each group of the layout is cut into chunks of at most `chunk_bytes`; chunks are dealt to the
// servers as contiguous runs of about equal bytes, so chunk 0 always lies on server 0. Chunk
// boundaries are multiples of Codec::group() from the group's start, so buckets, and with
// them the bits, are the same on any number of servers.
//
// With fragments (sync.fragments) each group is cut into stretches first, dealt to the fragments in
// turn, and no chunk belongs to two of them. So each server holds about as much of one fragment as
// of another, and the fragments do not depend on the number of servers or on `chunk_bytes`.
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/job/parameter_layout.h"

namespace kumo {

struct Chunk {
  int index = 0;
  int server = 0;
  Segment segment = Segment::kDecayed;
  Range range = {};  // positions in the flat vector
  int fragment = 0;  // JobPlan says in which rounds it takes part
  StepFactors factors = {};

  // A chunk whose weights never change: contributions have no payload.
  bool frozen() const { return factors.frozen(); }
  // Whether an optimiser steps it, so that partitions carry state for it.
  bool trained() const { return segment != Segment::kStatistics && !frozen(); }
};

class ShardMap {
 public:
  // Most chunks of a network, but for those that are cut finer by groups and fragments.
  static constexpr int64_t kMostChunks = 1 << 16;

  ShardMap() = default;
  // Chunks are multiples of `unit` numbers, and longer than chunk_bytes if there would be more
  // than kMostChunks. Requires 1 <= servers <= kMaxServers, chunk_bytes > 0 and 1 <= fragments <=
  // kMostFragments.
  ShardMap(const ParameterLayout& layout, int servers, int64_t chunk_bytes,
           int64_t unit = int64_t{Codec::kBucket}, int fragments = 1);

  int servers() const { return static_cast<int>(first_chunk_.size()) - 1; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // Server `server` holds chunks [FirstChunk(server), FirstChunk(server + 1)); maybe none.
  int FirstChunk(int server) const { return first_chunk_[server]; }
  std::span<const Chunk> ServerChunks(int server) const;
  // The part of the flat vector that a server's chunks span, gaps between groups included.
  Range ServerRange(int server) const;
  // float32 bytes of a server's chunks.
  int64_t ServerBytes(int server) const;

 private:
  std::vector<Chunk> chunks_;
  std::vector<int> first_chunk_{0};
};

}  // namespace kumo
