// Class list: the names of classes in a text file, a line each, which numbers them from 0
// (data.class_list). Functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// The names, without blanks around them. InvalidArgument, with file and line, if a name occurs
// twice or there is none; the errors of ReadWholeFile.
Result<std::vector<std::string>> ReadClassList(const std::string& path);

// InvalidArgument if the list at `path` has another number of names than data.classes.
Status CheckListed(const std::string& path, std::span<const std::string> names, int classes);

// The error of a class that the training set lacks. where: the validation set, or a place in it.
Status NotTrained(const std::string& where, const std::string& class_name,
                  std::span<const std::string> train_names);

// The numbers of the names, which outlive them. A lookup by hash: there may be hundreds of
// thousands of names.
std::unordered_map<std::string_view, int32_t> NumbersOfClasses(std::span<const std::string> names);

// "2 classes (cat, dog)", with the first names.
std::string ClassesCounted(std::span<const std::string> names);

}  // namespace kumo
