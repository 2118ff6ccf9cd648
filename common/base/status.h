// Status and Result: errors that a peer, a disk or a file can cause, as values.
//
// A function that can fail for such a reason returns Status, or Result<T> if it also has a value.
// The code tells the caller how to react; the message says what happened, to which object, and how
// to mend it. Bugs of Kumo itself are CHECKs (glog), never Statuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <glog/logging.h>

namespace kumo {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,     // the bytes or the value are wrong: refuse them
  kFailedPrecondition,  // stop: a retry cannot help (configuration or mismatch)
  kNotFound,            // the named object does not exist
  kUnavailable,         // resend or retry later
  kAborted,             // redo the round
  kDataLoss,            // a file or a message is damaged
  kResourceExhausted,   // disk, memory or a bounded queue is full
  kInternal,            // unexpected failure of a library
  kOutOfRange,          // a computed number has left its range, as in a training that diverges
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with the prefix "context: "; an ok status stays ok.
  Status WithContext(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }
Status InvalidArgument(std::string message);
Status FailedPrecondition(std::string message);
Status NotFound(std::string message);
Status Unavailable(std::string message);
Status Aborted(std::string message);
Status DataLoss(std::string message);
Status ResourceExhausted(std::string message);
Status Internal(std::string message);
Status OutOfRange(std::string message);
// For a `catch (...)`: the exception as an error. ResourceExhausted if memory or threads are short,
// otherwise Internal.
Status CurrentException();
// Returns the error that a peer sent by its code; an unknown code becomes Internal.
Status ErrorFromPeer(uint32_t code, std::string message);

// A value of type T, or the Status that explains its absence. Calling value() on an error is a bug
// (CHECK).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    CHECK(!status_.ok()) << "a Result made from an ok Status has no value";
  }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() & {
    CHECK(ok()) << status_.message();
    return *value_;
  }
  const T& value() const& {
    CHECK(ok()) << status_.message();
    return *value_;
  }
  T&& value() && {
    CHECK(ok()) << status_.message();
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace kumo

// Returns an error to the caller: KUMO_RETURN_IF_ERROR(file.Sync());
#define KUMO_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::kumo::Status kumo_status_ = (expression);  \
    if (!kumo_status_.ok()) return kumo_status_; \
  } while (false)

// Takes a Result's value or returns its error: KUMO_ASSIGN_OR_RETURN(auto file, Open(path));
#define KUMO_ASSIGN_OR_RETURN(declaration, expression) \
  KUMO_ASSIGN_OR_RETURN_IMPL(KUMO_CONCAT(kumo_result_, __LINE__), declaration, expression)
#define KUMO_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) return result.status();                         \
  declaration = std::move(result).value()
#define KUMO_CONCAT_IMPL(a, b) a##b
#define KUMO_CONCAT(a, b) KUMO_CONCAT_IMPL(a, b)
