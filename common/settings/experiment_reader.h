// Settings in layers: what an experiment file includes, the file itself, the command line. A later
// layer goes over the earlier ones.
//
// Used once, by one thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/settings/option_table.h"
#include "common/settings/parser.h"
#include "common/settings/variables.h"

namespace kumo {

// The text of an experiment file. NotFound when it cannot be read, InvalidArgument when it is too
// long to be one.
Result<std::string> ReadExperimentFile(const std::string& path);

class ExperimentReader {
 public:
  // So many problems come with advice, which takes longer to find than the rest of a file to read:
  // one with more of them is most likely no experiment at all.
  static constexpr size_t kMostAdvice = 20;

  // All are borrowed for life; what is read goes to *loaded.
  ExperimentReader(const OptionTable* table, const Variables* variables, LoadedExperiment* loaded)
      : table_(*table), variables_(*variables), loaded_(*loaded) {}

  // The file and, before it, those that it includes.
  void ReadFile(const std::string& path);
  // The same of `text`, as if it stood in the file `path`.
  void ReadText(const std::string& text, const std::string& path);
  // "section.key=value" each; the last of several for one key counts.
  void ReadCommandLine(const std::vector<std::string>& sets);
  // At the end: variables in paths are replaced, and paths that are relative to the file in which
  // they stand are made relative to the working directory.
  void ResolvePaths();

 private:
  // Where a key got its value.
  struct Source {
    int layer = 0;
    std::string folder;  // of the file; "" for the command line
  };
  // A file that is being read.
  struct OpenFile {
    std::string identity;  // the same for all names of one file
    std::string includes;  // "a.conf:3 includes b.conf"
  };

  void Include(const std::string& value, const std::string& path, const std::string& where);
  void Set(const std::string& key, const std::string& value, const std::string& where,
           const Source& source);
  void Section(const std::string& name, const std::string& where);
  bool Advises() const;  // whether what is unknown comes with what it was meant to be
  void Problem(const std::string& where, const std::string& what) {
    loaded_.problems.push_back(CutInTheMiddle(where + ": " + what));
  }

  const OptionTable& table_;
  const Variables& variables_;
  LoadedExperiment& loaded_;
  std::map<std::string, Source> sources_;  // by key
  std::vector<OpenFile> open_;             // the first includes the second, and so on
  int layers_ = 0;                         // files read so far
};

}  // namespace kumo
