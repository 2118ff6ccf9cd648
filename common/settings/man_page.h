// A man page of section 1, as groff's man macros.
//
// Pure value; what it is given is plain text, in which nothing is a macro or an escape.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

class ManPage {
 public:
  // name: "kumo launch", whose page is kumo-launch(1). summary: half a sentence, one line.
  ManPage(std::string_view name, std::string_view summary);

  void Section(std::string_view title);
  // Filled, whatever its lines are.
  void Paragraph(std::string_view text);
  // What is explained, in bold, and what it is, filled and indented.
  void Item(std::string_view term, std::string_view text);
  // "kumo-check(1)".
  static std::string Reference(std::string_view name);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace kumo
