// kumo-data show: what an experiment's data are. `kumo data` calls it.
#pragma once

#include <span>
#include <string>

namespace kumo {

// args: those behind "show". The exit code; last words are said.
int RunShow(std::span<const std::string> args);

}  // namespace kumo
