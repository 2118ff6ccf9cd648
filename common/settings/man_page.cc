#include "common/settings/man_page.h"

#include <algorithm>
#include <cctype>

namespace kumo {
namespace {

// "kumo-launch" of "kumo launch".
std::string PageName(std::string_view name) {
  std::string page(name);
  std::replace(page.begin(), page.end(), ' ', '-');
  return page;
}

// One line as groff is to print it.
std::string Escaped(std::string_view line) {
  std::string escaped;
  // At the start of a line these two would make it a request.
  if (line.starts_with('.') || line.starts_with('\'')) escaped = "\\&";
  for (const char c : line) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string EscapedLines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += Escaped(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

ManPage::ManPage(std::string_view name, std::string_view summary) {
  const std::string page = PageName(name);
  std::string title = page;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  text_ = ".TH " + Escaped(title) + " 1 \"\" Kumo \"User Commands\"\n";
  Section("NAME");
  text_ += Escaped(page) + " \\- " + Escaped(summary) + "\n";
}

void ManPage::Section(std::string_view title) { text_ += ".SH " + Escaped(title) + "\n"; }

void ManPage::Paragraph(std::string_view text) { text_ += ".PP\n" + EscapedLines(text); }

void ManPage::Item(std::string_view term, std::string_view text) {
  text_ += ".TP\n\\fB" + Escaped(term) + "\\fR\n" + EscapedLines(text);
}

std::string ManPage::Reference(std::string_view name) { return PageName(name) + "(1)"; }

}  // namespace kumo
