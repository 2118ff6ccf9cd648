// Detection set: images with annotated objects, the common part of the readers of detection data.
//
// A sample has the fields "image" (bytes), and the lists "boxes" (left, top, right, bottom:
// float32, in pixels of the sample's image, where pixel i lies between i and i + 1), "classes"
// (int32) and "difficult" (bytes, 0 or 1), each with an entry per object. Their first extent is the
// largest number of objects of an image of the set, at least 1.
//
// Rules for odd annotations, in this order; the set's notes count the cases of each rule and name
// the first ones:
//
//   class that data.class_list does not have      the object is dropped
//   reversed corners                              they are swapped
//   no area: two equal coordinates of an axis     the object is dropped
//   wholly outside the image                      the object is dropped
//   partly outside the image                      the box is clipped
//   image without objects                         is kept
//   more objects than evaluation counts           are kept
//   more objects than kMostMatchedObjects         are kept
//   annotated size is not the image's             the image's counts
//
// Coordinates may have fractions. Boxes are those of the upright image (image_header.h), as
// annotation programs show it. Sizes are read in the images' headers when the set is opened, and
// annotated sizes are only compared with them. A missing image, or one with damaged annotations, is
// a damaged image.
//
// Values and functions; thread-safe. The opened dataset is thread-safe, too (samples/dataset.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_files.h"
#include "data/readers/registry.h"
#include "data/samples/dataset.h"

namespace kumo {

// An object as its file has it.
struct AnnotatedObject {
  int32_t name = 0;  // of its class, in DetectionSet::names
  bool difficult = false;
  // The corners, in the coordinates of the set.
  float left = 0, top = 0, right = 0, bottom = 0;
};

struct AnnotatedImage {
  std::string file;  // in its container
  // As annotated, for a note; 0: unknown.
  int64_t height = 0;
  int64_t width = 0;
  std::vector<AnnotatedObject> objects;
  // An error, with the file's name, if annotations or image are damaged or missing.
  Status problem;
};

// Images of one folder or archive.
struct AnnotatedImages {
  ImageContainer container;
  std::vector<AnnotatedImage> images;
};

struct DetectionSet {
  std::string name;  // for messages
  std::vector<AnnotatedImages> parts;
  // Names of classes; data.class_list may select some. Without a list class i is names[i], or, of a
  // validation set, the training set's class of that name.
  std::vector<std::string> names;
  // Coordinates are numbers of pixels from 1 on, and the last ones belong to the box: a box from 1
  // to the width is as wide as the image. False: positions, and the image begins at 0.
  bool numbers_pixels = false;
  DataNotes notes;
};

// The most objects of an image.
inline constexpr int64_t kMostObjects = 1 << 16;

// Opens the set. Images are decoded at each read (ImageLoader); the encoded images of a tar in gzip
// are kept in memory, up to request.room. Images have request.image_size, to which the whole image
// is scaled, with the boxes; their own sizes with request.originals; or, without image_size, the
// size of the first one, and others are refused.
//
// InvalidArgument if the number of classes is not request.classes, if request.train_names lacks the
// name of a class, if an image has more than kMostObjects objects, or if there are no images; an
// image's problem, unless damaged images are skipped or surveyed; the errors of ImageStore::Open.
// Messages name files and settings.
Result<std::unique_ptr<Dataset>> OpenDetectionSet(DetectionSet set, const ReaderRequest& request);

// As it would be opened.
Result<DatasetExtents> MeasureDetectionSet(DetectionSet set, const ReaderRequest& request);

}  // namespace kumo
