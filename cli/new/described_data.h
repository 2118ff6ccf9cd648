// Described data: a data set as kumo-data recognises it, with the settings to read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/environment.h"
#include "common/base/status.h"

namespace kumo {

// A data set as kumo-data describes it.
struct DescribedData {
  std::string form;                                           // "image folders of 5 classes"
  std::vector<std::pair<std::string, std::string>> settings;  // of [data], without the section
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
  std::string field;             // that the network takes: image, tokens, features
  bool bytes = false;            // pixels
  std::vector<int64_t> extents;  // channels x height x width; of a text: the window
  int64_t classes = 0;           // of a text: the vocabulary; 0: labels are numbers
  int64_t label_numbers = 0;
  // Labels that are numbers: mean of all, and the largest standard deviation.
  double label_mean = 0, label_deviation = 0;
  int64_t objects = 0;   // of detection data, in the training set
  int64_t features = 0;  // numbers of a sample in the field "features", as of tables
  bool masks = false;    // with the class of each pixel
  int64_t damaged = 0;   // images
  // Columns of a table: names, and their use.
  std::vector<std::pair<std::string, std::string>> columns;
  std::vector<std::string> notes;  // for people
};

// Runs kumo-data describe, which shows a bar if stderr is a terminal. Its errors.
Result<DescribedData> DescribeData(const CliEnvironment& environment, const std::string& path);

}  // namespace kumo
