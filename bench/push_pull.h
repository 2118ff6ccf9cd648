// push_pull: the cost of moving a model. A worker process pushes a model of float32 chunk by chunk
// to a server process, which adds each chunk to its sums; then it pulls the sums and copies them
// out. One contender is Kumo's transport; the others move the same bytes and do the same arithmetic
// over a bare ZeroMQ pair and a raw TCP connection, so the difference is the cost of Kumo's layers.
//
// Each contender is a pair: Serve runs for ever in a process of its own; a PushPullWorker runs in
// the measuring process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace kumo::bench {

constexpr size_t kChunkFloats = size_t{1} << 18;  // 1 MiB

// Layout of the model; chunk i is floats [i * kChunkFloats, ...).
struct Model {
  size_t floats = 0;

  size_t chunks() const { return (floats + kChunkFloats - 1) / kChunkFloats; }
  std::span<float> chunk(std::span<float> all, size_t i) const {
    return all.subspan(i * kChunkFloats, std::min(kChunkFloats, floats - i * kChunkFloats));
  }
};

// sum[i] += x[i], the server's arithmetic in every contender; x may have any alignment.
void AddChunk(std::span<const std::byte> x, std::span<float> sum);

class PushPullWorker {
 public:
  virtual ~PushPullWorker() = default;
  // Pushes `update` and then pulls into `weights`; both have Model::floats numbers.
  virtual void PushPull(std::span<float> update, std::span<float> weights) = 0;
};

struct Contender {
  std::string name;
  // Serves for ever; writes its address as a line to `report_fd` once it listens.
  void (*serve)(const Model& model, int report_fd);
  std::unique_ptr<PushPullWorker> (*connect)(const Model& model, const std::string& address);
  // Change of the weights by one push of x, in units of x: +1, or -1 if the server takes a gradient
  // step.
  int direction = 1;
};

// Writes `line` and a newline.
void Report(int fd, const std::string& line);

Contender KumoContender();
Contender KumoKeysContender();
Contender KumoIpcContender();
Contender KumoChecksumContender();
Contender KumoShardContender();
Contender BareZmqContender();
Contender RawTcpContender();
Contender RawTcpStagedContender();

}  // namespace kumo::bench
