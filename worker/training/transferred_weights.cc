#include "worker/training/transferred_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/source_folder.h"
#include "common/checkpoint/tensor_list.h"
#include "common/tensor_files/tensor_file.h"
#include "worker/training/stored_weights.h"
#include "worker/training/tensor_names.h"

namespace kumo {
namespace {

// A tensor from elsewhere.
struct Offer {
  std::string name;
  std::vector<int64_t> shape;
  // Why it fits none, whatever its shape; asked of one of the same name.
  std::string (*misfit)(const Offer& offer, const TensorSpec& here) = nullptr;
  Segment segment = Segment::kDecayed;  // of a checkpoint's
  std::string unreadable;               // of a file's

  std::string ShapeText() const { return TensorSpec{name, shape}.ShapeText(); }
};

std::string MisfitOfFile(const Offer& offer, const TensorSpec&) { return offer.unreadable; }

std::string MisfitOfCheckpoint(const Offer& offer, const TensorSpec& here) {
  const bool statistics = offer.segment == Segment::kStatistics;
  if (statistics == (here.segment == Segment::kStatistics)) return "";
  return statistics ? "a statistic there, trained here" : "trained there, a statistic here";
}

// The first few, for a message.
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

// Who gets what, while tensors are offered.
class Transfer {
 public:
  Transfer(const ParameterLayout& layout, const TensorNames& names, std::span<float> weights)
      : layout_(layout), names_(names), weights_(weights), reasons_(layout.tensors().size()) {}

  // Where the tensor's numbers go; empty where they are not wanted.
  std::span<float> RoomFor(const Offer& offer) {
    there_.Add(offer.name, offer.ShapeText());
    const int i = names_.Find(offer.name);
    if (i < 0) {
      origin_.add_unused(offer.name + " " + offer.ShapeText());
      return {};
    }
    const TensorSpec& here = layout_.tensors()[i];
    std::string& reason = reasons_[i];
    reason = offer.misfit(offer, here);
    if (reason.empty() && offer.shape != here.shape) {
      reason = offer.ShapeText() + " there, " + here.ShapeText() + " here";
    }
    if (!reason.empty()) return {};
    reason = kTaken;
    const Range range = layout_.tensor(i);
    return weights_.subspan(range.begin, range.size());
  }

  // source: "checkpoint DIR", what is offered by; kind: "the checkpoint".
  Result<checkpoint::Origin> Finish(const std::string& source, const std::string& kind) {
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
    if (!origin_.taken().empty()) return std::move(origin_);
    return FailedPrecondition("no tensor of " + source +
                              " has the name and the shape of one of the network: it has " +
                              there_.text() + "; the network has " + here.text() +
                              "; network.initial_names can say which is which");
  }

  checkpoint::Origin& origin() { return origin_; }

 private:
  static constexpr char kTaken[] = "taken";

  const ParameterLayout& layout_;
  const TensorNames& names_;
  const std::span<float> weights_;
  std::vector<std::string> reasons_;  // by tensor: why it was not taken; "": it was not offered
  FewNames there_;
  checkpoint::Origin origin_;
};

// A checkpoint of release 0.1 holds this network, or nobody knows what.
Result<ParameterLayout> SourceLayout(const checkpoint::Manifest& manifest,
                                     const ParameterLayout& layout) {
  if (HasTensors(manifest)) return LayoutOf(manifest);
  if (manifest.fingerprint() == layout.fingerprint()) return layout;
  return FailedPrecondition(
      "it was written by release 0.1, which did not say what its tensors are, and is of another "
      "network");
}

Result<checkpoint::Origin> FromCheckpoint(const std::string& path, const ParameterLayout& layout,
                                          Transfer* transfer) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const CheckpointFolder folder, FindCheckpointAt(files, path));
  KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                        VerifyCheckpoint(files, folder.parent, folder.name));
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
  return transfer->Finish("checkpoint " + folder.path(), "the checkpoint");
}

Result<checkpoint::Origin> FromFile(const std::string& path, TensorFormat format,
                                    Transfer* transfer) {
  PosixFileSystem files;
  transfer->origin().set_checkpoint(path);
  KUMO_RETURN_IF_ERROR(ReadTensorFile(
      files, path, format, [&](const FileTensor& tensor) -> Result<std::span<float>> {
        return transfer->RoomFor(
            {tensor.name, tensor.shape, MisfitOfFile, Segment::kDecayed, tensor.unreadable});
      }));
  return transfer->Finish(path, "the file");
}

}  // namespace

Result<checkpoint::Origin> TransferWeights(const Experiment::Network& network,
                                           const ParameterLayout& layout,
                                           std::span<float> weights) {
  TensorNames names(layout);
  if (!network.initial_names.empty()) {
    Result<TensorNames> read = TensorNames::Read(network.initial_names, layout);
    if (!read.ok()) return read.status().WithContext("network.initial_names");
    names = *std::move(read);
  }
  Transfer transfer(layout, names, weights);
  const std::string& path = network.initial_weights;
  if (const auto format = TensorFormatOf(path)) return FromFile(path, *format, &transfer);
  return FromCheckpoint(path, layout, &transfer);
}

}  // namespace kumo
