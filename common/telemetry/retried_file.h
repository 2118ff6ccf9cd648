// Retried file: an output file of a run that a full disk does not end. If a record cannot be
// written, it and the later ones wait in memory, and the file is opened and tried again until the
// disk takes them. Nothing is missing afterwards, unless more than kMostWaiting records had to
// wait: then the oldest are lost, and the message says how many.
//
// A position (a round, a number of samples) never falls from record to record, except by GoBack.
// Writer opens a file to append after a position, and removes later records and a last record that
// was written in part.
//
// Owned by the run recorder; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace kumo {

template <typename Writer>
class RetriedFile {
 public:
  static constexpr size_t kMostWaiting = 20'000;
  static constexpr TimeUs kPause = 5 * kSecond;  // between two attempts

  using Open = std::function<Result<std::unique_ptr<Writer>>(int64_t position)>;
  using Record = std::function<Status(Writer*)>;
  using Say = std::function<void(const std::string& line)>;

  // what: the file's name in messages, "log.jsonl". position: of the last record to keep; -1: a new
  // file. Nothing is opened before Begin().
  RetriedFile(std::string what, int64_t position, const Clock* clock, Open open, Say say)
      : what_(std::move(what)),
        clock_(clock),
        open_(std::move(open)),
        say_(std::move(say)),
        position_(position) {}

  // Opens the file. Returns an error that no retry can mend.
  Status Begin() {
    begun_ = true;
    WriteWaiting();
    const StatusCode code = failure_.code();
    const bool may_pass =
        code == StatusCode::kResourceExhausted || code == StatusCode::kUnavailable;
    return may_pass ? OkStatus() : failure_;
  }

  // Records after the position do not count any more.
  void GoBack(int64_t position) {
    std::erase_if(waiting_, [&](const auto& one) { return one.position > position; });
    position_ = position;
    writer_.reset();
    if (begun_) WriteWaiting();
  }

  void Write(int64_t position, Record record) {
    waiting_.push_back({position, std::move(record)});
    if (begun_ && (failure_.ok() || clock_->NowUs() >= next_try_)) WriteWaiting();
    if (waiting_.size() <= kMostWaiting) return;
    waiting_.pop_front();
    ++lost_;
  }
  // At the position of the last record.
  void WriteAtEnd(Record record) {
    Write(waiting_.empty() ? position_ : waiting_.back().position, std::move(record));
  }

  // Why records wait now; ok: none does.
  const Status& failure() const { return failure_; }

  // Makes the records durable. The error says how many are missing.
  Status Flush() {
    if (!begun_) return OkStatus();
    if (!waiting_.empty() || !writer_) WriteWaiting();
    if (!failure_.ok()) {
      return failure_.WithContext(std::to_string(waiting_.size() + lost_) + " records of " + what_ +
                                  " are lost");
    }
    return writer_->Flush();
  }

 private:
  struct Waiting {
    int64_t position = 0;
    Record record;
  };

  void WriteWaiting() {
    if (!writer_) {
      Result<std::unique_ptr<Writer>> opened = open_(position_);
      if (!opened.ok()) return Fail(opened.status());
      writer_ = std::move(*opened);
    }
    const size_t waited = waiting_.size();
    while (!waiting_.empty()) {
      const Status status = waiting_.front().record(writer_.get());
      if (!status.ok()) {
        writer_.reset();  // a part of the record may be in the file
        return Fail(status);
      }
      position_ = std::max(position_, waiting_.front().position);
      waiting_.pop_front();
    }
    if (failure_.ok()) return;
    failure_ = OkStatus();
    say_(what_ + ": written again, " + std::to_string(waited) + " records had waited" +
         (lost_ > 0 ? ", and " + std::to_string(lost_) + " older ones are lost" : ""));
    lost_ = 0;
  }

  void Fail(const Status& status) {
    next_try_ = clock_->NowUs() + kPause;
    if (failure_.ok()) {
      say_("warning: " + status.message() + "; the training continues, and the records of " +
           what_ + " wait in memory until they can be written");
    }
    failure_ = status;
  }

  const std::string what_;
  const Clock* const clock_;
  const Open open_;
  const Say say_;
  bool begun_ = false;
  int64_t position_;                // of the last record in the file
  std::unique_ptr<Writer> writer_;  // null: not open
  std::deque<Waiting> waiting_;
  size_t lost_ = 0;
  Status failure_;  // of the last attempt
  TimeUs next_try_ = 0;
};

}  // namespace kumo
