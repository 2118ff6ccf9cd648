#include "common/settings/command_line_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/settings/command_line.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct DescribedCommand {
  std::string file, mode = "a";
  std::vector<std::string> sets;
  bool json = false;
  CommandLine line{"kumo try", "Tries this\nand that. Then ends.\n.SH is no heading"};

  DescribedCommand() {
    line.AddPositional("FILE", "The file", true, &file);
    line.AddRepeated("set", "KEY=VALUE", "Sets", &sets);
    line.AddOption("mode", "MODE", {.values = {"a", "b"}}, "How; a\\b", &mode);
    line.AddFlag("json", "JSON", &json);
    line.AddNote("Exit codes: 0 done.");
  }
};

TEST(CommandLinePages, WordsNameArgumentsOptionsAndValues) {
  EXPECT_EQ(CompletionWordsOf(DescribedCommand().line),
            "[kumo try]\nFILE\n--help\n--set KEY=VALUE\n--mode MODE a b\n--json\n");
}

TEST(CommandLinePages, TheManPageHasEveryRow) {
  const std::string page = ManPageOf(DescribedCommand().line);
  EXPECT_THAT(
      page,
      AllOf(HasSubstr(".TH KUMO\\-TRY 1 "), HasSubstr("kumo\\-try \\- Tries this and that\n"),
            HasSubstr("kumo try FILE [OPTIONS]\n"),
            HasSubstr(".TP\n\\fB\\-\\-mode MODE\\fR\nHow; a\\eb; one of a, b (default: "
                      "a)\n"),
            HasSubstr(".SH EXIT STATUS\n.PP\n0 done.\n"), HasSubstr("\n\\&.SH is no heading\n")));
}

TEST(CommandLinePages, HelpIsInTheFormThatWasAskedFor) {
  DescribedCommand d;
  const auto asked = [&](const std::string& form) {
    EXPECT_TRUE(d.line.Parse(std::vector<std::string>{form}).ok()) << form;
    EXPECT_TRUE(d.line.help_asked());
    return d.line.Help();
  };
  EXPECT_EQ(asked("--help=words"), CompletionWordsOf(d.line));
  EXPECT_EQ(asked("--help=man"), ManPageOf(d.line));
  EXPECT_EQ(asked("--help"), HelpOf(d.line));
  EXPECT_EQ(asked("-h"), HelpOf(d.line));
  EXPECT_FALSE(DescribedCommand().line.Parse(std::vector<std::string>{"x", "--help=html"}).ok());
}

}  // namespace
}  // namespace kumo
