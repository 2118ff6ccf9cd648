// Finders: a finder for each form of data sets, and the mark by which the dataset finder recognises
// the form (dataset_finder.cc chooses among them). The finders of masks and tables have headers of
// their own: mask_finder.h, table_finder.h.
//
// Functions of the disk's contents; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "data/finders/found_dataset.h"

namespace kumo {

// start: of a file (StartOf). names: files of a folder, sorted.
bool IsIdxImages(std::string_view start);
bool IsIdxLabels(std::string_view start);
bool IsImageMap(std::string_view start);
bool IsCtf(std::string_view start);
bool IsCifar(const std::vector<std::string>& names);

// A folder, perhaps in an archive, that holds folders of classes, or two such sets; or images with
// objects or masks. path: of the folder or archive; directory and name: its parts.
Result<FoundDataset> FindImageFolder(std::string path, const std::string& directory,
                                     std::string name);

// path: of the folder or archive that has the listed files; directory and name: its parts. None if
// the files are in another layout. The errors of OpenVoc.
Result<std::optional<FoundDataset>> FindVoc(const std::string& path, const std::string& directory,
                                            const std::string& name, const ImageListing& listing);

// Files of a folder, all of the form. Each image file of IDX needs a file of labels beside it.
Result<FoundDataset> FindIdx(const std::string& folder, const std::vector<std::string>& images,
                             const std::vector<std::string>& labels);
Result<FoundDataset> FindCtf(const std::string& folder, const std::vector<std::string>& names);
Result<FoundDataset> FindImageMap(const std::string& folder, const std::vector<std::string>& names);
FoundDataset FindCifar(const std::string& folder, const std::vector<std::string>& names);
FoundDataset FindText(const std::string& folder, const std::string& name);

}  // namespace kumo
