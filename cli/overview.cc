#include "cli/overview.h"

#include <cstdio>
#include <vector>

#include "common/settings/command_line_pages.h"

namespace kumo {
namespace {

constexpr char kAbout[] =
    "Trains neural networks on several processes or machines at once: servers hold the weights,\n"
    "workers each train on a share of the data and send back what they have learnt. What is\n"
    "trained, on what and how, is said by an experiment file.";
constexpr char kExitCodes[] =
    "0 done, 1 crashed, 64 wrong command line, 75 unavailable or preempted (start it\n"
    "again), 78 bad configuration (do not).";

void PrintHelp() {
  std::printf("Usage: kumo COMMAND [ARGUMENTS]\n\nCommands:\n");
  for (const Command& command : Commands()) {
    std::printf("  %-10s %s\n", std::string(command.name).c_str(),
                std::string(command.summary).c_str());
  }
  std::printf(
      "\n`kumo COMMAND --help` tells a command's options; `kumo --version` the version.\n"
      "Exit codes: %s\n",
      kExitCodes);
}

void PrintManPage() {
  ManPage page("kumo", "distributed training of neural networks");
  page.Section("SYNOPSIS");
  page.Paragraph("kumo COMMAND [ARGUMENTS]");
  page.Section("DESCRIPTION");
  page.Paragraph(kAbout);
  page.Section("COMMANDS");
  std::string pages;
  for (const Command& command : Commands()) {
    page.Item(command.name, command.summary);
    pages += ManPage::Reference("kumo " + std::string(command.name)) + ", ";
  }
  page.Section("OPTIONS");
  page.Item("--help", "Print the commands and end; kumo COMMAND --help tells a command's options");
  page.Item("--version", "Print version, commit, backends and instruction set, and end");
  page.Section("EXIT STATUS");
  page.Paragraph(kExitCodes);
  page.Section("SEE ALSO");
  page.Paragraph(pages + "kumo-server(1), kumo-worker(1), kumo-data(1)");
  std::fputs(page.text().c_str(), stdout);
}

void PrintWords(const CliEnvironment& environment) {
  std::printf("[kumo]\n--help\n--version\n");
  std::fflush(stdout);
  const std::vector<std::string> question = {"--help=words"};
  for (const Command& command : Commands()) command.run(environment, question);
}

}  // namespace

bool PrintOverview(const CliEnvironment& environment, const std::string& format) {
  if (format == "--help" || format == "-h" || format == "help") {
    PrintHelp();
  } else if (format == "--help=man") {
    PrintManPage();
  } else if (format == "--help=words") {
    PrintWords(environment);
  } else {
    return false;
  }
  return true;
}

}  // namespace kumo
