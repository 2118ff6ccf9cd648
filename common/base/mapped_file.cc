#include "common/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace kumo {
namespace {

std::string Cannot(const std::string& path) {
  return "cannot map " + path + ": " + std::generic_category().message(errno);
}

// Maps an open file, which may be closed afterwards.
Result<std::span<const uint8_t>> Map(int fd, const std::string& path) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return FailedPrecondition(Cannot(path));
  if (!S_ISREG(file.st_mode) || file.st_size == 0) {
    return InvalidArgument("cannot map " + path + ": it is empty or not a regular file");
  }
  const auto size = static_cast<size_t>(file.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) return ResourceExhausted(Cannot(path));
  return std::span(static_cast<const uint8_t*>(start), size);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: a FIFO's other end may never be opened.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return errno == ENOENT ? NotFound(Cannot(path)) : FailedPrecondition(Cannot(path));
  }
  const Result<std::span<const uint8_t>> bytes = Map(fd, path);
  ::close(fd);
  if (!bytes.ok()) return bytes.status();
  return std::shared_ptr<const MappedFile>(new MappedFile(*bytes));
}

MappedFile::~MappedFile() { ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size()); }

void MappedFile::LetGo(std::span<const uint8_t> part) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = static_cast<size_t>(part.data() - bytes_.data());
  const size_t first = (begin + page - 1) / page * page;
  const size_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  // Advice only: nothing is lost if it is refused.
  (void)::madvise(const_cast<uint8_t*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

}  // namespace kumo
