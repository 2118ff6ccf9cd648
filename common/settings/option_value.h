// The values of settings as text: what is allowed, how it is read, how it is written.
//
// Written values are canonical: equal settings give equal text on every machine (numbers are the
// shortest decimal that reads back as the same bits). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_plan.h"

namespace kumo {

// Which values a setting may have; of a list, each element.
struct Allowed {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;
  std::vector<std::string> values{};  // not empty: exactly these
  std::string characters{};           // not empty: letters, digits and these, at least one
  std::string text{};                 // not empty: said instead of what the above would say
  bool not_empty = false;             // of a text
  bool lines = false;                 // a text may be several, with tabs

  // "1 .. 4096", "0 .. below 1", "one of gradient, block", or "" for anything.
  std::string Text() const;
};

// Each reads `text` into *value. InvalidArgument says what the value must be ("must be a whole
// number, 1 .. 4096"), without naming the key; *value is then unchanged.
Status ReadValue(std::string_view text, const Allowed& allowed, bool* value);
Status ReadValue(std::string_view text, const Allowed& allowed, int* value);
Status ReadValue(std::string_view text, const Allowed& allowed, int64_t* value);
Status ReadValue(std::string_view text, const Allowed& allowed, uint64_t* value);
Status ReadValue(std::string_view text, const Allowed& allowed, float* value);
Status ReadValue(std::string_view text, const Allowed& allowed, double* value);
Status ReadValue(std::string_view text, const Allowed& allowed, std::string* value);
Status ReadValue(std::string_view text, const Allowed& allowed, SyncMode* value);
// Lists are separated by commas; spaces around an element do not count; "" is the empty list.
Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<double>* value);
Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<std::string>* value);

std::string WriteValue(bool value);
std::string WriteValue(int value);
std::string WriteValue(int64_t value);
std::string WriteValue(uint64_t value);
std::string WriteValue(float value);
std::string WriteValue(double value);
std::string WriteValue(const std::string& value);
std::string WriteValue(SyncMode value);
std::string WriteValue(const std::vector<double>& value);
std::string WriteValue(const std::vector<std::string>& value);

// `text` without blanks and ends of lines around it.
std::string_view Trimmed(std::string_view text);

}  // namespace kumo
