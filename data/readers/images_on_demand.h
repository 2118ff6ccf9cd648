// Dataset of labelled images that are decoded at each read.
//
// Thread-safe: concurrent readers take a decoder each from a pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "data/readers/image_files.h"
#include "data/readers/image_set.h"
#include "data/samples/dataset.h"

namespace kumo {

// Image store: random access to the encoded images of a set in a folder, a plain tar or a zip
// archive; only their locations are in memory. Immutable and thread-safe.
class ImageStore {
 public:
  // Scans an archive once. FailedPrecondition if it must be unpacked from its start (tar in gzip;
  // zip methods other than deflate, or encrypted). NotFound if an archive lacks a name; DataLoss if
  // it is damaged.
  static Result<std::unique_ptr<ImageStore>> Open(const ImageContainer& container,
                                                  std::vector<std::string> names);

  int64_t size() const { return std::ssize(names_); }
  const std::string& name(int64_t index) const { return names_[index]; }
  // Memory in use.
  int64_t bytes() const;
  // Reads the file names[index] into `content`. Requires an index in [0, size()). NotFound,
  // InvalidArgument if it exceeds kMaxImageFileBytes, DataLoss if it is truncated.
  Status Read(int64_t index, std::vector<uint8_t>* content) const;

 private:
  ImageStore(ImageContainer container, std::vector<std::string> names)
      : container_(std::move(container)), names_(std::move(names)) {}

  Status ReadFromArchive(const ArchivePlace& place, std::vector<uint8_t>* content) const;

  const ImageContainer container_;
  const std::vector<std::string> names_;
  // For an archive:
  std::vector<ArchivePlace> places_;  // by name
  std::unique_ptr<ReadableFile> file_;
};

class ImagesOnDemand final : public Dataset {
 public:
  // set: labels, names and container; `store` has the files.
  ImagesOnDemand(ImageSet set, std::unique_ptr<ImageStore> store, ImageTarget target,
                 const ReaderRequest& request);

  int64_t size() const override { return std::ssize(set_.labels); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return set_.class_names; }
  std::vector<int32_t> SampleClasses() const override { return set_.labels; }
  const DataNotes& notes() const override { return set_.notes; }
  const std::string& name() const override { return set_.name; }
  // DataLoss, InvalidArgument or Unavailable, with the file, if an image is damaged, of another
  // size, or missing. If damaged images are skipped, the next valid image is read instead of one
  // (OpenImageSet); DataLoss if there is none.
  Status ReadKey(const SampleKey& key, Sample* sample) const override;

 private:
  // Buffers of one reading thread.
  struct Workplace {
    ImageMaker maker;
    std::vector<uint8_t> file;
  };
  std::unique_ptr<Workplace> TakeWorkplace() const;
  Status ReadImage(int64_t index, Workplace& workplace, Sample* sample) const;
  // Reads the image, or the next valid one in place of a damaged one. Returns its index.
  Result<int64_t> ReadOrReplace(int64_t index, Workplace& workplace, Sample* sample) const;
  bool IsKnownAsDamaged(int64_t index) const;
  // Returns true if the image is to be logged.
  bool NoteDamage(int64_t index) const;
  std::string Name(int64_t index) const { return set_.container.Name(store_->name(index)); }

  const ImageSet set_;  // without file names
  const std::unique_ptr<const ImageStore> store_;
  const ImageTarget target_;
  const Fields fields_;
  const int classes_;
  const bool skip_damaged_;
  const std::vector<SplitPart> parts_;  // by image; empty: one part
  const bool survey_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> idle_ KUMO_GUARDED_BY(mutex_);
  // Damaged images found so far, so that each is decoded and logged once.
  mutable std::unordered_set<int64_t> damaged_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
