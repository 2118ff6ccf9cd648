#include "common/settings/command_line_formats.h"

#include <string_view>

#include "common/settings/command_line.h"
#include "common/settings/man_page.h"

namespace kumo {
namespace {

constexpr std::string_view kExitCodes = "Exit codes: ";

std::string Synopsis(const CommandLine& line) {
  std::string synopsis = line.program();
  for (const CommandLine::Positional& p : line.positionals()) {
    synopsis += p.required ? " " + p.placeholder : " [" + p.placeholder + "]";
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

}  // namespace kumo
