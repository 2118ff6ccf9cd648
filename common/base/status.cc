#include "common/base/status.h"

#include <exception>
#include <new>
#include <system_error>

namespace kumo {

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

Status InvalidArgument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
Status FailedPrecondition(std::string message) {
  return Status(StatusCode::kFailedPrecondition, std::move(message));
}
Status NotFound(std::string message) { return Status(StatusCode::kNotFound, std::move(message)); }
Status Unavailable(std::string message) {
  return Status(StatusCode::kUnavailable, std::move(message));
}
Status Aborted(std::string message) { return Status(StatusCode::kAborted, std::move(message)); }
Status DataLoss(std::string message) { return Status(StatusCode::kDataLoss, std::move(message)); }
Status ResourceExhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
Status Internal(std::string message) { return Status(StatusCode::kInternal, std::move(message)); }
Status OutOfRange(std::string message) {
  return Status(StatusCode::kOutOfRange, std::move(message));
}

Status CurrentException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("there is not enough memory");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return ResourceExhausted("cannot start a thread: " + error.code().message());
    }
    return Internal(error.what());
  } catch (const std::exception& error) {
    return Internal(error.what());
  } catch (...) {
    return Internal("an unknown exception");
  }
}

Status ErrorFromPeer(uint32_t code, std::string message) {
  const bool known = code > 0 && code <= static_cast<uint32_t>(StatusCode::kOutOfRange);
  return Status(known ? static_cast<StatusCode>(code) : StatusCode::kInternal, std::move(message));
}

}  // namespace kumo
