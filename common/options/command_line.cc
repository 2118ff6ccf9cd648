#include "common/options/command_line.h"

#include <algorithm>
#include <utility>

#include "common/nearest.h"

namespace kumo {

CommandLine::CommandLine(std::string program, std::string about)
    : program_(std::move(program)), about_(std::move(about)) {
  AddFlag("help", "Print this text and end", &help_asked_);
}

void CommandLine::AddPositional(std::string placeholder, std::string help, bool required,
                                std::string* value) {
  positionals_.push_back({std::move(placeholder), std::move(help), required, value});
}

void CommandLine::AddFlag(std::string name, std::string help, bool* value) {
  AddRow({std::move(name), "", std::move(help), "", "", [value](std::string_view) {
            *value = true;
            return OkStatus();
          }});
}

void CommandLine::AddRepeated(std::string name, std::string placeholder, std::string help,
                              std::vector<std::string>* values) {
  AddRow({std::move(name), std::move(placeholder), std::move(help), "", "",
          [values](std::string_view text) {
            values->emplace_back(text);
            return OkStatus();
          }});
}

void CommandLine::AddNote(std::string note) { notes_ += "\n" + std::move(note) + "\n"; }

void CommandLine::AddRow(Row row) { rows_.push_back(std::move(row)); }

Status CommandLine::ReadOption(std::span<const std::string> args, size_t* i) {
  const std::string& arg = args[*i];
  const size_t equals = arg.find('=');
  const std::string given = arg == "-h" ? "--help" : arg.substr(0, equals);
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&](const Row& r) { return "--" + r.name == given; });
  if (row == rows_.end()) {
    std::vector<std::string> known;
    for (const Row& r : rows_) known.push_back("--" + r.name);
    return InvalidArgument("unknown option " + given + DidYouMean(given, known) + " (" + program_ +
                           " --help lists them)");
  }
  std::string_view value;
  if (row->placeholder.empty()) {
    if (equals != std::string::npos) return InvalidArgument(given + " takes no value");
  } else if (equals != std::string::npos) {
    value = std::string_view(arg).substr(equals + 1);
  } else {
    if (*i + 1 >= args.size()) {
      return InvalidArgument(given + " needs a value: " + given + " " + row->placeholder);
    }
    value = args[++*i];
  }
  const Status status = row->read(value);
  if (status.ok()) return status;
  return InvalidArgument(given + " " + std::string(value) + ": " + status.message());
}

Status CommandLine::Parse(std::span<const std::string> args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      help_asked_ = true;
      return OkStatus();
    }
  }
  size_t positional = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].size() > 1 && args[i].front() == '-') {
      KUMO_RETURN_IF_ERROR(ReadOption(args, &i));
    } else if (positional < positionals_.size()) {
      *positionals_[positional++].value = args[i];
    } else {
      return InvalidArgument("'" + args[i] + "' is one argument too many (" + program_ +
                             " --help says which it takes)");
    }
  }
  if (positional < positionals_.size() && positionals_[positional].required) {
    return InvalidArgument(positionals_[positional].placeholder + " is missing (" + program_ +
                           " --help)");
  }
  return OkStatus();
}

std::string CommandLine::Help() const {
  std::string text = "Usage: " + program_;
  for (const Positional& p : positionals_) {
    text += p.required ? " " + p.placeholder : " [" + p.placeholder + "]";
  }
  text += " [OPTIONS]\n\n" + about_ + "\n";
  if (!positionals_.empty()) text += "\nArguments:\n";
  for (const Positional& p : positionals_) {
    text += "  " + p.placeholder + "\n      " + p.help + "\n";
  }
  text += "\nOptions:\n";
  for (const Row& row : rows_) {
    text += "  --" + row.name + (row.placeholder.empty() ? "" : " " + row.placeholder) + "\n";
    text += "      " + row.help;
    if (!row.allowed.empty()) text += "; " + row.allowed;
    if (!row.default_text.empty()) text += " (default: " + row.default_text + ")";
    text += "\n";
  }
  return text + notes_;
}

}  // namespace kumo
