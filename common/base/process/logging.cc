#include "common/base/process/logging.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"

namespace kumo {

// A sink writes one plain file. glog's own files have a name per severity and start, a symlink and
// a header each. glog calls send() under its lock.
class Logging::FileSink : public google::LogSink {
 public:
  FileSink(int fd, std::string prefix) : fd_(fd), prefix_(std::move(prefix)) {}
  ~FileSink() override { close(fd_); }

  using google::LogSink::send;

  void send(google::LogSeverity severity, const char* /*full_filename*/, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            size_t length) override {
    std::string text = ToString(severity, base_filename, line, time, message, length);
    text.insert(0, prefix_);
    text += '\n';
    // One append per line: lines of two processes that share a file never mix.
    const ssize_t written = write(fd_, text.data(), text.size());
    (void)written;  // a full disk must not end the job
  }

 private:
  const int fd_;
  const std::string prefix_;
};

class Logging::CommandSink : public google::LogSink {
 public:
  using google::LogSink::send;

  void send(google::LogSeverity severity, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/, const google::LogMessageTime& /*time*/,
            const char* message, size_t length) override {
    // glog itself prints fatal messages, with location and stack.
    if (severity != google::GLOG_WARNING && severity != google::GLOG_ERROR) return;
    std::string text = severity == google::GLOG_WARNING ? kWarning : "error: ";
    text.append(message, length);
    text += '\n';
    std::fputs(text.c_str(), stderr);
  }
};

namespace {

Status CannotLog(const std::string& path, int error) {
  const std::string text =
      path + ": cannot write the log: " + std::strerror(error) + "; set output.directory";
  return error == ENOSPC || error == EDQUOT ? ResourceExhausted(text) : FailedPrecondition(text);
}

Result<int> OpenLog(const std::string& path) {
  Result<int> fd = OpenRegularFile(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd.ok()) return fd;
  return Status(fd.status().code(),
                "cannot write the log: " + fd.status().message() + "; set output.directory");
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "host";
  std::string host(name);
  host = host.substr(0, host.find('.'));
  for (char& c : host) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return host.empty() ? "host" : host;
}

Logging::Logging(std::unique_ptr<google::LogSink> sink, std::string program, std::string file)
    : sink_(std::move(sink)), program_(std::move(program)), file_(std::move(file)) {}

Result<std::unique_ptr<Logging>> Logging::Start(const LogSettings& settings) {
  const std::string host = HostName();
  const std::string process = settings.role + (settings.rank.empty() ? "" : "-" + settings.rank);
  std::unique_ptr<google::LogSink> sink;
  std::string file;
  if (!settings.directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(settings.directory, error);
    file = settings.directory + "/" + process + "." + host + ".log";
    if (error) return CannotLog(file, error.value());
    KUMO_ASSIGN_OR_RETURN(const int fd, OpenLog(file));
    sink = std::make_unique<FileSink>(fd, process + "@" + host + " ");
  }
  auto logging =
      std::unique_ptr<Logging>(new Logging(std::move(sink), settings.program, std::move(file)));
  logging->Begin(settings.warnings_to_stderr ? google::GLOG_WARNING : google::GLOG_FATAL);
  return logging;
}

std::unique_ptr<Logging> Logging::ForCommand(const std::string& program) {
  auto logging =
      std::unique_ptr<Logging>(new Logging(std::make_unique<CommandSink>(), program, ""));
  logging->Begin(google::GLOG_FATAL);
  return logging;
}

void Logging::Begin(int stderr_threshold) {
  // An empty destination keeps glog from opening files of its own.
  for (int severity = google::GLOG_INFO; severity <= google::GLOG_FATAL; ++severity) {
    google::SetLogDestination(severity, "");
  }
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = stderr_threshold;
  FLAGS_log_prefix = true;
  google::InitGoogleLogging(program_.c_str());
  if (sink_ != nullptr) google::AddLogSink(sink_.get());
}

Logging::~Logging() {
  if (sink_ != nullptr) google::RemoveLogSink(sink_.get());
  google::ShutdownGoogleLogging();
}

}  // namespace kumo
