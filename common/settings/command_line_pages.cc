#include "common/settings/command_line_pages.h"

#include <cctype>
#include <string_view>

#include "common/base/text.h"
#include "common/settings/command_line.h"

namespace kumo {
namespace {

constexpr std::string_view kExitCodes = "Exit codes: ";

std::string Synopsis(const CommandLine& line) {
  std::string synopsis = line.program();
  for (const CommandLine::Positional& p : line.positionals()) {
    synopsis +=
        (p.required ? " " + p.placeholder : " [" + p.placeholder + "]") + (p.repeats ? "..." : "");
  }
  return synopsis + " [OPTIONS]";
}

std::string NameOf(const CommandLine::Row& row) {
  return "--" + row.name + (row.placeholder.empty() ? "" : " " + row.placeholder);
}

// The first sentence, on one line, without its full stop.
std::string Summary(std::string_view about) {
  size_t end = about.find('.');
  while (end != std::string_view::npos && end + 1 < about.size() && about[end + 1] > ' ') {
    end = about.find('.', end + 1);  // as in "NAME.conf"
  }
  std::string sentence(about.substr(0, end));
  for (char& c : sentence) {
    if (c == '\n') c = ' ';
  }
  return sentence;
}

void AddNotes(const CommandLine& line, ManPage* page) {
  for (const std::string_view note : line.notes()) {
    const bool codes = note.starts_with(kExitCodes);
    page->Section(codes ? "EXIT STATUS" : "NOTES");
    page->Paragraph(codes ? note.substr(kExitCodes.size()) : note);
  }
}

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
  while (!text.empty()) lines += Escaped(TakeLine(&text)) + "\n";
  return lines;
}

}  // namespace

std::string HelpOf(const CommandLine& line) {
  std::string text = "Usage: " + Synopsis(line) + "\n\n" + line.about() + "\n";
  if (!line.positionals().empty()) text += "\nArguments:\n";
  for (const CommandLine::Positional& p : line.positionals()) {
    text += "  " + p.placeholder + "\n      " + p.help + "\n";
  }
  text += "\nOptions:\n";
  for (const CommandLine::Row& row : line.rows()) {
    text += "  " + NameOf(row) + "\n      " + row.Explanation() + "\n";
  }
  for (const std::string& note : line.notes()) text += "\n" + note + "\n";
  return text;
}

std::string ManPageOf(const CommandLine& line) {
  ManPage page(line.program(), Summary(line.about()));
  page.Section("SYNOPSIS");
  page.Paragraph(Synopsis(line));
  page.Section("DESCRIPTION");
  page.Paragraph(line.about());
  for (const CommandLine::Positional& p : line.positionals()) page.Item(p.placeholder, p.help);
  page.Section("OPTIONS");
  for (const CommandLine::Row& row : line.rows()) {
    page.Item(NameOf(row), row.Explanation());
  }
  AddNotes(line, &page);
  page.Section("SEE ALSO");
  const std::string others = ManPage::Reference("kumo") + ", " + ManPage::Reference("kumo options");
  page.Paragraph(others);
  return page.text();
}

std::string CompletionWordsOf(const CommandLine& line) {
  std::string words = "[" + line.program() + "]\n";
  for (const CommandLine::Positional& p : line.positionals()) words += p.placeholder + "\n";
  for (const CommandLine::Row& row : line.rows()) {
    words += NameOf(row);
    for (const std::string& value : row.values) words += " " + value;
    words += "\n";
  }
  return words;
}

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
