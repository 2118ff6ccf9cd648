// Table finder: recognises the columns of a CSV file by their names and cells (dataset_finder.h).
//
// A column of paths of images makes pictures, or, if its PNGs have few numbers and another column
// has pictures, masks. The label is the column with the name of one, or else the last column that
// may be one: a class, if it has few different words or whole numbers without gaps, else a number.
// The other columns of numbers are one vector. Columns that number the rows, and those of words,
// are left out.
//
// A function of the disk's contents; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/finders/found_dataset.h"

namespace kumo {

// Vector of all columns of numbers that are no label.
inline constexpr char kFeaturesField[] = "features";

// files: CSV files of a folder; by their names (PartIn) or alone the training set, and the
// validation set, if it has the columns of the training set, those of a range in the same order,
// and the same classes; a note tells why it is none. InvalidArgument with file, line and
// column if there is no row of names, a column has a few cells of another kind than the others, an
// image does not exist, or there is no label or no input; the errors of reading the files.
Result<FoundDataset> FindTable(const std::string& folder, const std::vector<std::string>& files);

}  // namespace kumo
