// Brings to this server's disk what it lacks of the files that a checkpoint's manifest names: the
// disk says which those are, and each is fetched from a server that has it, one after the other.
//
// Owned by whoever collects; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "server/disks/file_fetch.h"
#include "server/protocol/disk_answers.h"
#include "server/protocol/step_context.h"

namespace kumo {

class Collection {
 public:
  // The server that has the file at a place in the manifest; "": none has.
  using HolderOf = std::function<PeerName(int file)>;

  // wanted: places in the manifest. piece_bytes: as FileFetch. number: tells the disk's answers
  // from those to other collections.
  Collection(checkpoint::Manifest manifest, std::vector<int> wanted, HolderOf holder_of,
             uint64_t piece_bytes, uint64_t number);

  void Start(StepContext* context);
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  void OnAnswer(const FilesAnswer& answer, StepContext* context);
  void Tick(StepContext* context);

  const checkpoint::Manifest& manifest() const { return manifest_; }
  // All files are here, or one cannot be had: which one, and why.
  bool done() const { return !status_.ok() || (checked_ && missing_.empty()); }
  const Status& status() const { return status_; }

 private:
  void FetchNext(StepContext* context);
  void GoAlong(StepContext* context);

  checkpoint::Manifest manifest_;
  std::vector<int> wanted_;
  HolderOf holder_of_;
  uint64_t piece_bytes_;
  uint64_t number_;
  bool checked_ = false;
  std::vector<int> missing_;  // the last one is being fetched
  std::optional<FileFetch> fetch_;
  Status status_;
};

}  // namespace kumo
