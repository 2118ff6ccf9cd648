// Registry of dataset readers. A new format is a file beside this one, a line in registry.cc, and a
// value of DataReader with its word and traits (common/settings/choices.h);
// tests/data/reader_conformance_test.cc then needs a sample of it.
//
// Constant data and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/settings/choices.h"
#include "data/dataset.h"

namespace kumo {

enum class DataPart { kTraining, kValidation };

// How a text becomes samples (text.h).
struct TextSettings {
  TextTokens tokens = TextTokens::kCharacters;
  int64_t window = 1;             // tokens of a sample
  int64_t windows = 0;            // samples of an epoch; 0: as many as lie side by side
  double validation_share = 0.1;  // of the tokens: the last ones
};

// One set of samples to open.
struct ReaderRequest {
  std::string images;      // paths
  std::string labels;      // "" for a reader that finds them with the images
  int classes = 0;         // every label must be below it; 0: labels are numbers (ctf)
  int64_t limit = 0;       // keep only the first so many samples; 0: all
  std::string cache = "";  // folder for what packed files hold (unpacked_file.h); "": none
  std::vector<int64_t> image_size = {};  // that images are made to have; empty: as they are
  bool skip_damaged = false;             // leave damaged images out
  DataPart part = DataPart::kTraining;   // of a file that is both sets
  TextSettings text = {};
  // Of images: they keep their own sizes, and what is done to them afterwards gives them one. Wants
  // image_size, of which the channels count.
  bool originals = false;
  DecodeImages decode = DecodeImages::kAuto;
  int64_t room = INT64_MAX;  // bytes: kAuto decodes what takes more than that on demand
  // Of CNTK's text format: the names of its streams.
  std::string image_stream = "features";
  std::string label_stream = "labels";  // "": all labels are 0, whatever the lines have
};

// A reader never crashes on what a file holds, takes no more memory than the file's size justifies,
// and refuses a file that is cut off anywhere.
struct Reader {
  DataReader id;  // TraitsOf (common/settings/choices.h) says what it reads
  Result<std::unique_ptr<Dataset>> (*open)(const ReaderRequest& request);
  // What `open` would take into memory, from the files' headers alone.
  Result<DatasetExtents> (*measure)(const ReaderRequest& request);
};

std::span<const Reader> Readers();

// Borrowed for ever.
const Reader& ReaderOf(DataReader id);

}  // namespace kumo
