// Image set: labelled image files, the common part of the image readers.
//
// Values and functions; thread-safe. The opened dataset is thread-safe, too (samples/dataset.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_files.h"
#include "data/readers/registry.h"
#include "data/samples/data_notes.h"
#include "data/samples/validation_split.h"

namespace kumo {

// The samples, in order.
struct ImageSet {
  std::string name;  // for messages
  ImageContainer container;
  std::vector<std::string> files;        // in the container; not empty
  std::vector<int32_t> labels;           // by file
  std::vector<std::string> class_names;  // may be empty
  DataNotes notes;
};

// Opens the images, decoding them at the start or at each read (request.decode), with equal
// results. Every image has request.image_size or, if that is empty, the size and channels of the
// first one; images of other sizes are scaled (request.resize), or refused without image_size. With
// request.originals each image keeps its size and is decoded at each read. Decoded images of an
// archive are kept in request.cache, shared by all processes of the machine. Errors name the file.
//
// Damaged images are refused. With request.skip_damaged a damaged image keeps its place in the set
// and is replaced, label included, by the next valid image in the order of the set; the last image
// is followed by the first one. With request.split_share the next valid image of the same part is
// taken. So the set has as many samples as files, and its samples follow from the files and the
// share alone: they do not depend on the time of decoding, the process or earlier reads.
Result<std::unique_ptr<Dataset>> OpenImageSet(ImageSet set, const ReaderRequest& request);

// The part of each of a set's images, if damaged ones are to be replaced by images of their own
// part; else empty.
std::vector<SplitPart> PartsToKeep(const ReaderRequest& request, int64_t images);

// Adds remarks on the images to set->notes, judging by a few PNGs.
void AddRemarks(ImageSet* set);

// True if an error of reading an image is the image's fault, and not the fault of a setting, memory
// or a disk that may recover.
bool IsDamage(const Status& error);

// Remedies, to follow a message about damage.
inline constexpr std::string_view kDamageAdvice =
    "; repair or remove the file (kumo check --data lists all damaged images), or replace it by "
    "the "
    "next image with data.damaged = skip";

// The error of a named image, with the remedies if it is damage.
Status OfImage(const std::string& name, const Status& error);
// Refuses a set of `images` with these damaged ones, unless they are passed over and some are left.
Status CheckDamaged(const std::map<int64_t, Status>& damaged, int64_t images,
                    const ReaderRequest& request);
// The entries of a listing that give no sample. Unusable ones are damage: InvalidArgument names the
// first, unless they are passed over.
Result<LeftOut> TakeLeftOut(const ImageContainer& container, ImageListing* listing,
                            const ReaderRequest& request);
// Logs that image `by` takes the place of a damaged one.
void WarnOfReplaced(const std::string& name, const Status& error, const std::string& by);

// Damaged images count as samples.
Result<DatasetExtents> MeasureImageSet(const ImageSet& set, const ReaderRequest& request);

}  // namespace kumo
