// Experiment files, in a folder that holds nothing else for them to include.
#include "common/settings/config_file.h"
#include "common/settings/option_table.h"
#include "common/settings/parser.h"
#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kumo::Variables variables = {{"HOME", "/home/somebody"}, {"KUMO_DATA", "/data"}};
  kumo::LoadedExperiment loaded;
  // Advice, where it is given, takes nearly all of the time: so to few inputs, for two problems.
  loaded.problems.resize(kumo::ExperimentReader::kMostAdvice - (size % 8 == 0 ? 2 : 0));
  kumo::ExperimentReader reader(&variables, &loaded);
  reader.ReadText(std::string(kumo::fuzz::AsText(data, size)), "/nowhere/input.conf");
  reader.ResolvePaths();
  kumo::CrossCheck(loaded.experiment, loaded.origins, &loaded.problems, &loaded.notes);
  return 0;
}
