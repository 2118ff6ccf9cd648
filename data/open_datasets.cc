#include "data/open_datasets.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/file.h"
#include "data/mean_image.h"
#include "data/readers/registry.h"

namespace kumo {
namespace {

constexpr char kHowToGet[] =
    "data/fetch.sh mnist DIR brings MNIST, `kumo-data digits --out DIR` draws a set without a "
    "network; then --set data.directory=DIR or KUMO_DATA=DIR names it";

std::string ShapeText(const SampleShape& shape) {
  return std::to_string(shape.channels) + " x " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width);
}

Result<std::string> PathOf(const Experiment::Data& data, const std::string& file) {
  if (file.starts_with('/')) return file;
  if (data.directory.empty()) {
    return FailedPrecondition("data.directory is not set, so " + file +
                              " is nowhere: " + kHowToGet);
  }
  return JoinPath(data.directory, file);
}

Result<std::unique_ptr<Dataset>> OpenOne(const Experiment::Data& data, const std::string& images,
                                         const std::string& labels, int64_t limit) {
  KUMO_ASSIGN_OR_RETURN(const Reader* reader, FindReader(data.reader));
  ReaderRequest request;
  KUMO_ASSIGN_OR_RETURN(request.images, PathOf(data, images));
  KUMO_ASSIGN_OR_RETURN(request.labels, PathOf(data, labels));
  request.classes = data.classes;
  request.limit = limit;
  auto dataset = reader->open(request);
  if (!dataset.ok() && dataset.status().code() == StatusCode::kNotFound) {
    return NotFound(dataset.status().message() + "; " + kHowToGet);
  }
  return dataset;
}

// A window that begins in the padding holds some of the image all the same.
Status CheckCrops(const Experiment::Data& data, const Dataset& dataset) {
  const SampleShape shape = dataset.shape();
  const int64_t most = std::min(shape.height, shape.width) - 1;
  if (data.crop_pad <= most) return OkStatus();
  return FailedPrecondition(
      "data.crop_pad = " + std::to_string(data.crop_pad) + " is too much for " + dataset.name() +
      ", whose images are " + ShapeText(shape) +
      ": a window might show nothing of one; set it to 0 .. " + std::to_string(most));
}

}  // namespace

Result<Datasets> OpenDatasets(const Experiment::Data& data) {
  Datasets sets;
  KUMO_ASSIGN_OR_RETURN(sets.train,
                        OpenOne(data, data.train_images, data.train_labels, data.train_limit));
  KUMO_ASSIGN_OR_RETURN(sets.validation, OpenOne(data, data.validation_images,
                                                 data.validation_labels, data.validation_limit));
  if (sets.train->shape() != sets.validation->shape()) {
    return FailedPrecondition(sets.train->name() + " holds images of " +
                              ShapeText(sets.train->shape()) + ", " + sets.validation->name() +
                              " of " + ShapeText(sets.validation->shape()) +
                              "; name files that belong together");
  }
  KUMO_RETURN_IF_ERROR(CheckCrops(data, *sets.train));
  if (data.subtract_mean) {
    KUMO_ASSIGN_OR_RETURN(sets.mean, MeanImage(*sets.train));
  }
  return sets;
}

}  // namespace kumo
