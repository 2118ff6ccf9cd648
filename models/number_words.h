// Number words: words in a network file that stand for numbers of a job's data, so that one file
// fits data with any number of classes or tokens.
//
//   vocabulary    number of different tokens of a text
//   classes       data.classes
//
// A word may take the place of any number of the file, and so may a sum or product of words and
// whole numbers. The scores of a detector with four boxes a position and a background:
// outputs: 4 * (classes + 1).
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace kumo {

// 0: the data have no such number.
struct DataNumbers {
  int64_t vocabulary = 0;
  int64_t classes = 0;
};

// The text with a number for each such word, sum and product, and all else, comments and strings,
// in its place. InvalidArgument "name:line: ..." if a word stands for nothing, or an expression is
// none or is above 2^31 - 1.
Result<std::string> WithNumbers(const std::string& text, const std::string& name,
                                const DataNumbers& numbers);

// Whether the word `vocabulary` stands for a number in the text.
bool NeedsVocabulary(std::string_view text);

}  // namespace kumo
