#include "common/telemetry/tensorboard_writer.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "common/crc32c.h"
#include "proto/tensorboard.pb.h"

namespace kumo {
namespace {

template <typename T>
void AppendLittleEndian(T value, std::string* out) {
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t MaskedCrc(std::string_view bytes) { return MaskCrc32c(Crc32c(AsBytes(bytes))); }

// The host's name as a part of a file name.
std::string FileNamePart(std::string_view host) {
  std::string part;
  for (const char c : host.substr(0, 64)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_';
    part += plain ? c : '_';
  }
  return part.empty() ? "unknown" : part;
}

std::string NewName(FileSystem& files, const std::string& directory, std::string_view host,
                    double wall_time_s) {
  char time[32];
  std::snprintf(time, sizeof(time), "%010" PRId64, static_cast<int64_t>(wall_time_s));
  const std::string stem = JoinPath(
      directory, std::string("events.out.tfevents.") + time + "." + FileNamePart(host) + ".");
  int n = 0;
  while (files.Exists(stem + std::to_string(n))) ++n;
  return stem + std::to_string(n);
}

}  // namespace

std::string FrameRecord(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  AppendLittleEndian<uint64_t>(data.size(), &record);
  AppendLittleEndian<uint32_t>(MaskedCrc(record), &record);
  record.append(data);
  AppendLittleEndian<uint32_t>(MaskedCrc(data), &record);
  return record;
}

Result<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Create(FileSystem& files,
                                                                     const std::string& directory,
                                                                     std::string_view host,
                                                                     double wall_time_s,
                                                                     int64_t first_step) {
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(directory));
  const std::string path = NewName(files, directory, host, wall_time_s);
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  std::unique_ptr<TensorBoardWriter> writer(new TensorBoardWriter(path, std::move(file)));
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_file_version("brain.Event:2");
  KUMO_RETURN_IF_ERROR(writer->WriteEvent(event));
  event.set_step(first_step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  KUMO_RETURN_IF_ERROR(writer->WriteEvent(event));
  return writer;
}

Status TensorBoardWriter::Write(double wall_time_s, int64_t step, std::span<const Scalar> scalars) {
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(std::string(scalar.tag));
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  return WriteEvent(event);
}

Status TensorBoardWriter::WriteEvent(const tensorboard::Event& event) {
  return file_->Append(AsBytes(FrameRecord(event.SerializeAsString())));
}

}  // namespace kumo
