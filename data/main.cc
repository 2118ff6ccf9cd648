// kumo-data: makes data sets, and shows them.
#include <span>
#include <string>
#include <vector>

#include "common/base/process/standard_streams.h"
#include "data/digits_command.h"
#include "data/show_command.h"

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "show") return kumo::RunShow(std::span(args).subspan(1));
  return kumo::RunDigits(args);
}
