// Image loader: decodes the images of single samples of a set at each read, and reads the next
// valid sample in place of a damaged one. A sample has one image, or an image in each of several
// columns: pictures, and masks of the first picture.
//
// Thread-safe: concurrent readers take a decoder each from a pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "data/readers/image_store.h"
#include "data/readers/registry.h"
#include "data/samples/sample.h"
#include "data/samples/validation_split.h"

namespace kumo {

// Images of a set that go into one field, a file for each sample.
struct ImageColumn {
  int field = kImage;
  // The images are those of the stores, one store after the other.
  std::vector<std::unique_ptr<const ImageStore>> stores;
  ImageTarget target;
  int classes = 0;  // of a mask: its classes lie below, or are 255
};

class ImageLoader {
 public:
  // name: of the set, in messages. The columns have as many images each, at least one; the first
  // has pictures. damaged: samples that are known as damaged, with the reasons.
  ImageLoader(std::string name, std::vector<ImageColumn> columns, const ReaderRequest& request,
              std::map<int64_t, Status> damaged = {});
  // With one column, for kImage.
  ImageLoader(std::string name, std::vector<std::unique_ptr<const ImageStore>> stores,
              ImageTarget target, const ReaderRequest& request,
              std::map<int64_t, Status> damaged = {});

  int64_t size() const { return begins_.front().back(); }
  // Target of the first column.
  const ImageTarget& target() const { return columns_.front().target; }

  // A sample that was read.
  struct Loaded {
    int64_t index = 0;
    // Size of its first image in the file, upright; the sample's may be another one.
    int64_t height = 0;
    int64_t width = 0;
  };
  // Reads the images into the sample's fields. DataLoss, InvalidArgument or Unavailable, with the
  // file, if an image is damaged or missing, or a mask has another size than its picture;
  // FailedPrecondition if an image has another size than the first of the set, or a mask a class
  // outside the classes. If damaged images are skipped, the next valid sample is read instead of
  // one (OpenImageSet); DataLoss if there is none. Requires an index in [0, size()).
  Result<Loaded> Load(int64_t index, Sample* sample) const;

 private:
  // Buffers of one reading thread.
  struct Workplace {
    ImageMaker maker;
    std::vector<uint8_t> file;
  };
  // An image in its store.
  struct Place {
    const ImageStore& store;
    int64_t index;
  };

  Place PlaceOf(int64_t index, size_t column) const;
  std::string NameOf(int64_t index, size_t column = 0) const;
  std::unique_ptr<Workplace> TakeWorkplace() const;
  Result<Loaded> LoadOrReplace(int64_t index, Workplace& workplace, Sample* sample) const;
  // column: the one that is read, for errors.
  Result<Loaded> LoadOne(int64_t index, Workplace& workplace, Sample* sample, size_t* column) const;
  Result<ImageHeader> LoadImage(int64_t index, size_t column, Workplace& workplace,
                                Sample* sample) const;
  bool IsKnownAsDamaged(int64_t index) const;
  // Returns true if the image is to be logged.
  bool NoteDamage(int64_t index) const;

  const std::string name_;
  const std::vector<ImageColumn> columns_;
  // By column: the first image of each store, and the number of images.
  const std::vector<std::vector<int64_t>> begins_;
  const bool skip_damaged_;
  const std::vector<SplitPart> parts_;  // by image; empty: one part
  const bool survey_;
  const std::map<int64_t, Status> damaged_at_opening_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> idle_ KUMO_GUARDED_BY(mutex_);
  // Damaged images found so far, so that each is decoded and logged once.
  mutable std::unordered_set<int64_t> damaged_ KUMO_GUARDED_BY(mutex_);
};

// The format of the first valid image of a set, whose images are those of the stores, one store
// after the other. name: of the set, in messages. The first image's error, unless damaged images
// are skipped or surveyed; DataLoss if all are damaged.
Result<ImageTarget> TargetOfFirst(const std::string& name,
                                  std::span<const ImageStore* const> stores,
                                  const std::map<int64_t, Status>& damaged,
                                  const ReaderRequest& request);

}  // namespace kumo
