// Object detection: the objects that a checkpoint's detector finds in images which are in no data
// set (`kumo detect`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/detection/detections.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct DetectRequest {
  // Images, folders and archives of images (searched recursively).
  std::vector<std::string> inputs = {};
  DetectionRule rule = {.least_score = kShownScore};  // its candidates are CandidatesFor(its most)
  int batch = 16;             // images that are computed together; the CPU has 16 lanes
  std::string out = "";       // file of the JSON; "": stdout
  std::string pictures = "";  // folder for copies of the images with their objects; "": none
};

struct ImageObjects {
  std::string file;
  int64_t height = 0;  // of the upright image
  int64_t width = 0;
  // In pixels of the upright image; boxes may reach beyond its edges.
  std::vector<Detection> objects;
  std::string picture = "";  // file in which they are drawn; "": none
};

// {"file":"a.jpg","width":500,"height":375,"objects":[{"class":1,"name":"cat","score":0.75,
// "box":[left,top,right,bottom]}],"picture":"drawn/a.png"}; without names if classes have none, and
// without picture if there is none.
std::string JsonOf(const ImageObjects& image, std::span<const std::string> class_names);

// Writes an object of JSON while images are read: "checkpoint"; "images", a line each as JsonOf;
// and "damaged", a list of "FILE: REASON". A file appears whole or not at all. Images are stretched
// to the network's input, as in training. A damaged image is logged and listed, and the others are
// done.
//
// DataLoss if images are damaged, unless they are skipped and there are others. InvalidArgument if
// the network is no detector; otherwise the errors of InputImages, ObjectPictures, OpenStoredModel,
// NetworkOf, DataOf, of writing and of the device.
Status DetectObjects(const ModelName& name, const DetectRequest& request);

}  // namespace kumo
