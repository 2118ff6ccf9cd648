// Registry of dataset readers. A new format is a source file beside this one, its declaration in
// data/readers/all.h, a line in registry.cc, and a value of DataReader with its word and traits in
// common/settings/choices.h; tests/data/readers/reader_conformance_test.cc then requires a sample
// file of it.
//
// Constant data and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/choices.h"
#include "data/samples/dataset.h"

namespace kumo {

enum class DataPart { kTraining, kValidation };

// Conversion of a text to samples.
struct TextSettings {
  TextTokens tokens = TextTokens::kCharacters;
  int64_t window = 1;             // tokens per sample
  int64_t windows = 0;            // samples per epoch; 0: as many as fit side by side
  double validation_share = 0.1;  // of the tokens, from the end
};

// Request to open one set of samples.
struct ReaderRequest {
  std::string images;      // paths
  std::string labels;      // "" for readers that get labels with the images
  int classes = 0;         // upper bound of the labels; 0: labels are numbers (ctf)
  int64_t limit = 0;       // number of samples to keep; 0: all
  std::string cache = "";  // folder for contents of packed files (unpacked_file.h); "": none
  std::vector<int64_t> image_size = {};   // size of all images; empty: unchanged
  ResizeMode resize = ResizeMode::kCrop;  // to image_size
  bool skip_damaged = false;              // replace damaged images by the next valid ones
  // Share of the validation part, if the set is opened to be split (samples/validation_split.h);
  // a damaged image is then replaced by one of its own part. 0: it is not split.
  double split_share = 0;
  // Not null: the set is read to find all damaged images. They are decoded at each read if
  // possible, and a damaged one is an error of its sample; else receives "FILE: REASON" for each
  // damaged one.
  std::vector<std::string>* survey = nullptr;
  DataPart part = DataPart::kTraining;  // for a file with both sets
  TextSettings text = {};
  // Images keep their own sizes, and later transforms unify them. Requires image_size, which gives
  // the channels.
  bool originals = false;
  DecodeImages decode = DecodeImages::kAuto;
  int64_t room = INT64_MAX;  // memory limit in bytes above which kAuto decodes on demand
  // Stream names of CNTK's text format.
  std::string image_stream = "features";
  std::string label_stream = "labels";  // "": all labels are 0
  bool any_classes = false;             // of objects: as many as there are, whatever `classes` is
  std::string class_list = "";  // path of a file with the names of classes; "": from the data
  std::string columns = "";     // of a table (table_columns.h)
  // Names of the training set's classes, by which a validation set without class_list numbers its
  // own; it may lack some of them. Empty: the set's own names count.
  std::vector<std::string> train_names = {};
};

// A reader never crashes on a file's contents, takes no more memory than the file's size justifies,
// and refuses a file that is truncated anywhere.
struct Reader {
  DataReader id;  // its traits: TraitsOf (common/settings/choices.h)
  Result<std::unique_ptr<Dataset>> (*open)(const ReaderRequest& request);
  // The memory that `open` would take, from the files' headers alone.
  Result<DatasetExtents> (*measure)(const ReaderRequest& request);
};

std::span<const Reader> Readers();

// The reader's row, which lives as long as the process.
const Reader& ReaderOf(DataReader id);

}  // namespace kumo
