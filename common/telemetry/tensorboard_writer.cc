#include "common/telemetry/tensorboard_writer.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

#include "common/base/crc32c.h"
#include "proto/tensorboard.pb.h"

namespace kumo {
namespace {

template <typename T>
void AppendLittleEndian(T value, std::string* out) {
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t MaskedCrc(std::string_view bytes) { return MaskCrc32c(Crc32c(AsBytes(bytes))); }

// The host name as part of a file name.
std::string FileNamePart(std::string_view host) {
  std::string part;
  for (const char c : host.substr(0, 64)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_';
    part += plain ? c : '_';
  }
  return part.empty() ? "unknown" : part;
}

constexpr std::string_view kFileNameStart = "events.out.tfevents.";

std::string NewName(FileSystem& files, const std::string& directory, std::string_view host,
                    double wall_time_s) {
  char time[32];
  std::snprintf(time, sizeof(time), "%010" PRId64, static_cast<int64_t>(wall_time_s));
  const std::string stem =
      JoinPath(directory, std::string(kFileNameStart) + time + "." + FileNamePart(host) + ".");
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
  Status status = writer->WriteEvent(event);
  event.set_step(first_step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  if (status.ok()) status = writer->WriteEvent(event);
  if (status.ok()) return writer;
  (void)files.RemoveFile(path);  // the earlier error is the one to report
  return status;
}

std::optional<PngSize> PngSizeOf(std::string_view png) {
  // Signature, length and type of the first chunk, and its first numbers, which are big-endian (RFC
  // 2083).
  constexpr std::string_view kStart("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  if (!png.starts_with(kStart) || png.size() < kStart.size() + 8) return std::nullopt;
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(png[at + i]);
    return value;
  };
  const PngSize size = {number(kStart.size()), number(kStart.size() + 4)};
  constexpr uint32_t kMost = 1 << 16;
  const bool plausible =
      size.width > 0 && size.height > 0 && size.width <= kMost && size.height <= kMost;
  return plausible ? std::optional(size) : std::nullopt;
}

bool IsEventFile(std::string_view name) { return name.starts_with(kFileNameStart); }

Status RemoveEventFiles(FileSystem& files, const std::string& directory) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    if (!IsEventFile(name)) continue;
    KUMO_RETURN_IF_ERROR(files.RemoveFile(JoinPath(directory, name)));
  }
  return OkStatus();
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

Status TensorBoardWriter::WriteText(double wall_time_s, int64_t step, std::string_view tag,
                                    std::string_view text) {
  constexpr int kString = 7;   // TensorFlow's DT_STRING
  constexpr int kTensors = 2;  // TensorFlow's DATA_CLASS_TENSOR
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(std::string(tag));
  value->mutable_tensor()->set_dtype(kString);
  value->mutable_tensor()->mutable_shape()->add_dim()->set_size(1);
  value->mutable_tensor()->add_string_val(std::string(text));
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value->mutable_metadata()->set_data_class(kTensors);
  return WriteEvent(event);
}

Status TensorBoardWriter::WritePicture(double wall_time_s, int64_t step, std::string_view tag,
                                       std::string_view png) {
  constexpr int kColours = 3;
  const PngSize size = PngSizeOf(png).value_or(PngSize());
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(std::string(tag));
  value->mutable_image()->set_height(static_cast<int32_t>(size.height));
  value->mutable_image()->set_width(static_cast<int32_t>(size.width));
  value->mutable_image()->set_colorspace(kColours);
  value->mutable_image()->set_encoded_image_string(std::string(png));
  return WriteEvent(event);
}

Status TensorBoardWriter::WriteHyperparameters(double wall_time_s,
                                               std::span<const Hyperparameter> hyperparameters) {
  tensorboard::HParamsPluginData data;
  data.mutable_session_start()->set_start_time_secs(wall_time_s);
  auto& hparams = *data.mutable_session_start()->mutable_hparams();
  for (const Hyperparameter& hyperparameter : hyperparameters) {
    google::protobuf::Value& value = hparams[hyperparameter.name];
    if (const auto* truth = std::get_if<bool>(&hyperparameter.value)) {
      value.set_bool_value(*truth);
    } else if (const auto* number = std::get_if<double>(&hyperparameter.value)) {
      value.set_number_value(*number);
    } else {
      value.set_string_value(std::get<std::string>(hyperparameter.value));
    }
  }
  return WriteHParams(wall_time_s, "_hparams_/session_start_info", data);
}

Status TensorBoardWriter::WriteDone(double wall_time_s) {
  tensorboard::HParamsPluginData data;
  data.mutable_session_end()->set_status(tensorboard::HParamsPluginData::SessionEnd::SUCCESS);
  data.mutable_session_end()->set_end_time_secs(wall_time_s);
  return WriteHParams(wall_time_s, "_hparams_/session_end_info", data);
}

// The plugin reads its data from the metadata of an otherwise empty summary.
Status TensorBoardWriter::WriteHParams(double wall_time_s, const char* tag,
                                       const tensorboard::HParamsPluginData& data) {
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  value->mutable_tensor()->set_dtype(1);
  value->mutable_tensor()->mutable_shape()->add_dim();
  auto* plugin = value->mutable_metadata()->mutable_plugin_data();
  plugin->set_plugin_name("hparams");
  plugin->set_content(data.SerializeAsString());
  return WriteEvent(event);
}

Status TensorBoardWriter::WriteEvent(const tensorboard::Event& event) {
  return file_->Append(AsBytes(FrameRecord(event.SerializeAsString())));
}

}  // namespace kumo
