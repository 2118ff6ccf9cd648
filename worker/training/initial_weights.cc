#include "worker/training/initial_weights.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/did_you_mean.h"
#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/relocation.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"
#include "common/settings/option_value.h"
#include "common/tensor_files/tensor_file.h"

namespace kumo {

namespace {

// A tensor of the source.
struct Offer {
  std::string name;
  std::vector<int64_t> shape;
  // The reason why it fits no tensor of the same name, whatever its shape; "" if there is none.
  std::string (*misfit)(const Offer& offer, const TensorSpec& here) = nullptr;
  Segment segment = Segment::kDecayed;  // of a checkpoint's tensor
  std::string unreadable;               // of a file's tensor: why it cannot be read

  std::string ShapeText() const { return TensorSpec{name, shape}.ShapeText(); }
};

std::string MisfitOfFile(const Offer& offer, const TensorSpec&) { return offer.unreadable; }

std::string MisfitOfCheckpoint(const Offer& offer, const TensorSpec& here) {
  const bool statistics = offer.segment == Segment::kStatistics;
  if (statistics == (here.segment == Segment::kStatistics)) return "";
  return statistics ? "a statistic in the source, but trained in the network"
                    : "trained in the source, but a statistic in the network";
}

// List of the first few tensors, for a message.
class FewNames {
 public:
  void Add(const std::string& name, const std::string& shape) {
    constexpr int kShown = 4;
    if (++count_ <= kShown) text_ += (count_ == 1 ? "" : ", ") + Printable(name) + " " + shape;
    if (count_ == kShown + 1) text_ += ", ...";
  }
  std::string text() const { return count_ == 0 ? "none" : text_; }

 private:
  std::string text_;
  int count_ = 0;
};

// The first few of the texts.
std::string Listed(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  constexpr int kShown = 4;
  std::string text;
  for (int i = 0; i < std::min(texts.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + Printable(texts[i]);
  }
  return texts.size() > kShown ? text + ", ..." : text;
}

// Adds a note on a setting that gives the network other inputs than those for which its weights
// were trained.
void NoteOtherPixels(const std::string& key, const std::string& then, const std::string& now,
                     checkpoint::Origin* origin) {
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("empty") : Printable(value, 80);
  };
  origin->add_notes("the weights were trained with " + key + " = " + shown(then) + ", here it is " +
                    shown(now) + ": set it as there, unless other pixels are intended");
}

void NoteOtherPixels(const checkpoint::Manifest& manifest, const Experiment& experiment,
                     checkpoint::Origin* origin) {
  if (manifest.experiment_text().empty()) return;  // not known
  for (const SettingChange& change : SettingChanges(manifest.experiment_text(), experiment)) {
    const Option* const option = OptionTable::Shared().Find(change.key);
    if (option == nullptr || !option->Has(Effect::kPixels)) continue;
    NoteOtherPixels(change.key, change.then, change.now, origin);
  }
}

void NoteOtherPixels(const TensorNames& names, const Experiment& experiment,
                     checkpoint::Origin* origin) {
  for (const auto& [key, value] : names.pixels()) {
    const Option* const option = OptionTable::Shared().Find(key);
    Experiment there = experiment;
    if (option == nullptr || !option->read(value, &there).ok()) continue;  // Read has checked it
    const std::string then = option->write(there), now = option->write(experiment);
    if (then != now) NoteOtherPixels(key, then, now, origin);
  }
}

// Assignment of the source's tensors to the network's, one offer at a time.
class Transfer {
 public:
  Transfer(const ParameterLayout& layout, const TensorNames& names, std::span<float> weights)
      : layout_(layout), names_(names), weights_(weights), reasons_(layout.tensors().size()) {}

  // The destination of the tensor's elements; empty if the tensor is not used.
  std::span<float> RoomFor(const Offer& offer) {
    there_.Add(offer.name, offer.ShapeText());
    const int i = names_.Find(offer.name);
    // Another program's word for a tensor counts if the source has no tensor of the very name.
    const bool twice = i >= 0 && reasons_[i] == kTaken && names_.NameOf(i) != offer.name;
    if (i < 0 || twice) {
      origin_.add_unused(offer.name + " " + offer.ShapeText());
      return {};
    }
    const TensorSpec& here = layout_.tensors()[i];
    std::string& reason = reasons_[i];
    reason = offer.misfit(offer, here);
    if (reason.empty() && offer.shape != here.shape) {
      reason = offer.ShapeText() + " in the source, " + here.ShapeText() + " in the network";
    }
    if (!reason.empty()) return {};
    reason = kTaken;
    const Range range = layout_.tensor(i);
    return weights_.subspan(range.begin, range.size());
  }

  // source: "checkpoint DIR"; kind: "the checkpoint". partial: few tensors suffice.
  Result<checkpoint::Origin> Finish(const std::string& source, const std::string& kind,
                                    bool partial) {
    FewNames here;
    for (size_t i = 0; i < reasons_.size(); ++i) {
      const TensorSpec& tensor = layout_.tensors()[i];
      here.Add(tensor.name, tensor.ShapeText());
      if (reasons_[i] == kTaken) {
        origin_.add_taken(tensor.name);
        continue;
      }
      const std::string& name = names_.NameOf(static_cast<int>(i));
      const std::string missing =
          kind + " has no " + (name == tensor.name ? "such tensor" : "tensor " + Printable(name));
      origin_.add_left(tensor.name + ": " + (reasons_[i].empty() ? missing : reasons_[i]));
    }
    origin_.set_tensors(static_cast<int>(layout_.tensors().size()));
    origin_.set_tensors_taken(origin_.taken_size());
    const int taken = origin_.taken_size();
    if (2 * taken >= origin_.tensors() || (partial && taken > 0)) return std::move(origin_);
    const std::string match = " of the network in name and shape: it has " + there_.text() +
                              "; the network has " + here.text() +
                              "; map the names with network.initial_names";
    if (taken == 0)
      return FailedPrecondition("no tensor of " + source + " matches a tensor" + match);
    return FailedPrecondition("only " + std::to_string(taken) + " of " +
                              std::to_string(origin_.tensors()) +
                              " tensors of the network are in " + source + " by name and shape (" +
                              Listed(origin_.taken()) + "); not taken: " + Listed(origin_.left()) +
                              "; map other names with network.initial_names, or start with these "
                              "alone: kumo launch --partial (network.initial_partial=true)");
  }

  checkpoint::Origin& origin() { return origin_; }

 private:
  static constexpr char kTaken[] = "taken";

  const ParameterLayout& layout_;
  const TensorNames& names_;
  const std::span<float> weights_;
  std::vector<std::string> reasons_;  // by tensor: why it was not taken; "" if not offered
  FewNames there_;
  checkpoint::Origin origin_;
};

// A checkpoint of release 0.1 has no tensor names, so it must be of the same network.
Result<ParameterLayout> SourceLayout(const checkpoint::Manifest& manifest,
                                     const ParameterLayout& layout) {
  if (HasTensors(manifest)) return LayoutOf(manifest);
  if (manifest.fingerprint() == layout.fingerprint()) return layout;
  return FailedPrecondition(
      "release 0.1 wrote it without tensor names, and it is of another network than network.file");
}

Result<checkpoint::Origin> FromCheckpoint(const Experiment& experiment,
                                          const ParameterLayout& layout, Transfer* transfer) {
  PosixFileSystem files;
  const std::string& path = experiment.network.initial_weights;
  KUMO_ASSIGN_OR_RETURN(const CheckpointFolder folder, FindCheckpointAt(files, path));
  KUMO_ASSIGN_OR_RETURN(
      const checkpoint::Manifest manifest,
      OrNewestValid(VerifyCheckpoint(files, folder.parent, folder.name), files, folder.parent));
  const Result<ParameterLayout> source = SourceLayout(manifest, layout);
  if (!source.ok()) return source.status().WithContext("checkpoint " + folder.path());
  KUMO_ASSIGN_OR_RETURN(const Buffer<float> stored, LoadStoredWeights(folder.path(), *source));
  transfer->origin().set_checkpoint(folder.path());
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const TensorSpec& spec = source->tensors()[i];
    const std::span<float> room =
        transfer->RoomFor({spec.name, spec.shape, MisfitOfCheckpoint, spec.segment, ""});
    std::copy_n(stored.data() + source->tensor(static_cast<int>(i)).begin, room.size(),
                room.begin());
  }
  NoteOtherPixels(manifest, experiment, &transfer->origin());
  return transfer->Finish("checkpoint " + folder.path(), "the checkpoint",
                          experiment.network.initial_partial);
}

Result<checkpoint::Origin> FromFile(const Experiment::Network& network, TensorFormat format,
                                    Transfer* transfer) {
  PosixFileSystem files;
  const std::string& path = network.initial_weights;
  transfer->origin().set_checkpoint(path);
  KUMO_RETURN_IF_ERROR(ReadTensorFile(
      files, path, format, [&](const FileTensor& tensor) -> Result<std::span<float>> {
        return transfer->RoomFor(
            {tensor.name, tensor.shape, MisfitOfFile, Segment::kDecayed, tensor.unreadable});
      }));
  return transfer->Finish(path, "the file", network.initial_partial);
}

}  // namespace

std::string NamesFileOf(const Experiment::Network& network) {
  const std::filesystem::path given = network.initial_names;
  std::error_code error;
  if (given.has_extension() || std::filesystem::exists(given, error)) return given.string();
  std::filesystem::path beside = network.file;
  beside.replace_extension("." + given.filename().string() + ".names");
  return std::filesystem::exists(beside, error) ? beside.string() : given.string();
}

std::vector<std::string> WordsForNames(const Experiment::Network& network) {
  const std::filesystem::path file = network.file;
  const std::string begin = file.stem().string() + ".";
  constexpr std::string_view kEnd = ".names";
  std::vector<std::string> words;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= begin.size() + kEnd.size()) continue;
    if (!name.starts_with(begin) || !name.ends_with(kEnd)) continue;
    words.push_back(name.substr(begin.size(), name.size() - begin.size() - kEnd.size()));
  }
  std::ranges::sort(words);
  return words;
}

Result<checkpoint::Origin> TransferWeights(const Experiment& experiment,
                                           const ParameterLayout& layout,
                                           std::span<float> weights) {
  const Experiment::Network& network = experiment.network;
  TensorNames names(layout);
  if (!network.initial_names.empty()) {
    Result<TensorNames> read = TensorNames::Read(NamesFileOf(network), layout);
    if (!read.ok()) return read.status().WithContext("network.initial_names");
    names = *std::move(read);
  }
  Transfer transfer(layout, names, weights);
  NoteOtherPixels(names, experiment, &transfer.origin());
  const auto format = TensorFormatOf(network.initial_weights);
  if (format) return FromFile(network, *format, &transfer);
  return FromCheckpoint(experiment, layout, &transfer);
}

Result<InitialWeights> MakeInitialWeights(const Experiment& experiment,
                                          const ParameterLayout& layout, const ShardMap& map,
                                          Buffer<float> weights) {
  InitialWeights initial;
  const auto all = std::make_shared<Buffer<float>>(std::move(weights));
  if (!experiment.network.initial_weights.empty()) {
    Result<checkpoint::Origin> origin = TransferWeights(experiment, layout, all->span());
    if (!origin.ok()) {
      return FailedPrecondition("network.initial_weights: " + origin.status().message());
    }
    initial.origin = *std::move(origin);
  }
  for (const Chunk& chunk : map.chunks()) {
    const auto numbers = all->span().subspan(chunk.range.begin, chunk.range.size());
    initial.chunks.push_back({all, std::as_bytes(numbers)});
  }
  return initial;
}

Result<Buffer<float>> LoadStoredWeights(const std::string& path, const ParameterLayout& layout) {
  PosixFileSystem files;
  const CheckpointFolder folder = FolderOfCheckpoint(path);
  KUMO_ASSIGN_OR_RETURN(
      const checkpoint::Manifest manifest,
      OrNewestValid(VerifyCheckpoint(files, folder.parent, folder.name), files, folder.parent));
  KUMO_ASSIGN_OR_RETURN(const Relocation relocation, Relocation::Make(manifest, layout));
  const Range wanted = {0, layout.size()};
  KUMO_ASSIGN_OR_RETURN(ShardSnapshot snapshot,
                        ReadSnapshot(files, folder.parent, manifest, relocation.Stored(wanted)));
  relocation.Move(wanted, &snapshot);
  // The manifest is not trusted: its claim is checked before anything is allocated for it.
  int64_t in_tensors = 0;
  for (const TensorSpec& tensor : layout.tensors()) in_tensors += tensor.size();
  int64_t numbers = 0;
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind == StateKind::kStart) numbers += static_cast<int64_t>(array.numbers.size());
  }
  if (numbers < in_tensors) {
    return DataLoss("checkpoint " + path + " holds " + std::to_string(numbers) + " weights of " +
                    std::to_string(in_tensors));
  }
  Buffer<float> weights(layout.size());
  // Without separate evaluated weights, the weights that blocks start from are the evaluated ones.
  for (const StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const StateArray& array : snapshot.arrays) {
      if (array.kind != kind) continue;
      std::copy(array.numbers.begin(), array.numbers.end(), weights.data() + array.begin);
    }
  }
  return weights;
}

namespace {

constexpr uint64_t kLongestFileMib = 16;

// A line of a file of names: "theirs = ours". Both are empty for a blank line.
struct NamesLine {
  std::string theirs;
  std::string ours;
};

Result<NamesLine> ParseLine(std::string_view line) {
  line = Trimmed(line.substr(0, line.find('#')));
  if (line.ends_with('\r')) line = Trimmed(line.substr(0, line.size() - 1));
  if (line.empty()) return NamesLine();
  const size_t equals = line.find('=');
  const std::string_view theirs = Trimmed(line.substr(0, equals));
  const std::string_view ours = equals == line.npos ? "" : Trimmed(line.substr(equals + 1));
  if (theirs.empty() || ours.empty()) {
    return InvalidArgument("expected `source name = network name`, got \"" + Printable(line) +
                           "\"");
  }
  return NamesLine{std::string(theirs), std::string(ours)};
}

constexpr std::string_view kPixels = "pixels ";

// Checks a setting of the source's pixels.
Status CheckPixels(const std::string& key, const std::string& value) {
  const Option* const option = OptionTable::Shared().Find(key);
  if (option == nullptr || !option->Has(Effect::kPixels)) {
    return InvalidArgument("pixels: " + Printable(key) +
                           " is no setting of pixels, such as data.mean");
  }
  Experiment scratch;
  return option->read(value, &scratch).WithContext(key);
}

}  // namespace

TensorNames::TensorNames(const ParameterLayout& layout) {
  for (const TensorSpec& tensor : layout.tensors()) {
    tensors_[tensor.name] = static_cast<int>(names_.size());
    names_.push_back(tensor.name);
  }
}

Result<TensorNames> TensorNames::Read(const std::string& path, const ParameterLayout& layout) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (!text.ok()) return text.status().WithContext(path);
  const TensorNames own(layout);
  std::map<int, std::pair<std::string, int>> said;  // by tensor: name in the source, line
  std::map<std::string, int> lines;                 // by name in the source
  std::vector<std::pair<std::string, std::string>> pixels;
  std::istringstream stream(*text);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const std::string place = path + ":" + std::to_string(number);
    const Result<NamesLine> parsed = ParseLine(line);
    if (!parsed.ok()) return parsed.status().WithContext(place);
    const auto& [theirs, ours] = *parsed;
    if (ours.empty()) continue;
    if (theirs.starts_with(kPixels)) {
      const std::string key(Trimmed(std::string_view(theirs).substr(kPixels.size())));
      KUMO_RETURN_IF_ERROR(CheckPixels(key, ours).WithContext(place));
      pixels.emplace_back(key, ours);
      continue;
    }
    const int tensor = own.Find(ours);
    if (tensor < 0) {
      return InvalidArgument(place + ": the network has no tensor " + Printable(ours) +
                             DidYouMean(ours, own.names_));
    }
    const auto [first, is_new] = said.emplace(tensor, std::pair(theirs, number));
    const auto [before, is_new_there] = lines.emplace(theirs, number);
    if (is_new && is_new_there) continue;
    return InvalidArgument(place + ": " + Printable(is_new ? theirs : ours) +
                           " has a name already, in line " +
                           std::to_string(is_new ? before->second : first->second.second));
  }
  TensorNames names = own;
  names.pixels_ = std::move(pixels);
  for (const auto& [tensor, name_and_line] : said) names.names_[tensor] = name_and_line.first;
  names.tensors_.clear();
  // The file takes precedence over equal names.
  for (const auto& [tensor, name_and_line] : said) names.tensors_[name_and_line.first] = tensor;
  for (size_t i = 0; i < names.names_.size(); ++i) {
    names.tensors_.emplace(names.names_[i], static_cast<int>(i));
  }
  return names;
}

namespace {

// Words of PyTorch for the tensors of normalisations, and ours.
constexpr std::pair<std::string_view, std::string_view> kPytorchWords[] = {
    {".weight", ".scale"}, {".bias", ".shift"}, {".running_var", ".running_variance"}};

}  // namespace

int TensorNames::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  for (const auto& [theirs, ours] : kPytorchWords) {
    if (!name.ends_with(theirs)) continue;
    const std::string layer = name.substr(0, name.size() - theirs.size());
    const auto other = tensors_.find(layer + std::string(ours));
    if (other != tensors_.end()) return other->second;
  }
  return -1;
}

}  // namespace kumo
