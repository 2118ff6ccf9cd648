// Pages of a command line: its --help, a man page, and the words that a shell completes. The build
// asks each program for the last two (cmake/pages.cmake).
//
// Pure functions and values; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

class CommandLine;

// The text of --help.
std::string HelpOf(const CommandLine& line);

std::string ManPageOf(const CommandLine& line);

// A line "[kumo launch]", then one for each positional argument, "FILE", and for each option,
// "--name PLACEHOLDER VALUE ...": without a placeholder for a flag, and with values if only these
// are allowed.
std::string CompletionWordsOf(const CommandLine& line);

// A man page of section 1, in groff's man macros. Its texts are plain: no macro and no escape in
// them is interpreted.
class ManPage {
 public:
  // name: "kumo launch", whose page is kumo-launch(1). summary: half a sentence, one line.
  ManPage(std::string_view name, std::string_view summary);

  void Section(std::string_view title);
  // Filled, without its line breaks.
  void Paragraph(std::string_view text);
  // A term in bold, and its explanation, filled and indented.
  void Item(std::string_view term, std::string_view text);
  // "kumo-check(1)".
  static std::string Reference(std::string_view name);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace kumo
