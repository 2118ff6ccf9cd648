// Set of drawn digits on disk, with MNIST's file names and format.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Writer of a gzip'd IDX file (format: readers/idx.cc). The file appears under its name only when
// Commit() has made all of it durable (AtomicFile). After a crash its temporary file remains, and
// the next attempt overwrites it. Owned and used by one thread.
class IdxWriter {
 public:
  // extents: count, then the extents of one sample; one or three of them, each above 0. comment:
  // stored in the gzip header (ReadGzipComment). `files` must outlive the writer. All errors are
  // AtomicFile's.
  static Result<IdxWriter> Create(FileSystem& files, const std::string& path,
                                  const std::vector<int64_t>& extents, const std::string& comment);

  IdxWriter(IdxWriter&&) noexcept;
  IdxWriter& operator=(IdxWriter&&) noexcept;
  // Removes an unfinished file.
  ~IdxWriter();

  // Appends the bytes of further samples.
  Status Append(std::span<const uint8_t> bytes);
  // Makes the file durable under its name; nothing may be appended afterwards. Requires that
  // exactly the announced bytes were appended.
  Status Commit();

 private:
  struct State;
  explicit IdxWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The comment in a file's gzip header; "" if there is none, or no such gzip file.
std::string ReadGzipComment(FileSystem& files, const std::string& path);

struct DigitSetOptions {
  std::string directory;  // the files go to directory/mnist/, like MNIST's own
  int64_t train = 60000;  // images
  int64_t validation = 10000;
  uint64_t seed = 1;
  int threads = 1;
  bool force = false;  // overwrite files of other origin
};

enum class DigitSetOutcome { kDrawn, kAlreadyThere };

// Writes train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and
// t10k-labels-idx1-ubyte.gz, unless all four exist and were drawn with these options. Requires
// train, validation and threads >= 1. FailedPrecondition if files of another origin exist, such as
// MNIST's own (unless force); otherwise the errors of `files`.
Result<DigitSetOutcome> WriteDigitSet(FileSystem& files, const DigitSetOptions& options);

}  // namespace kumo
