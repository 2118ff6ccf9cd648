// Which build of Kumo a program is, and what it computes with on this machine: what --version
// prints.
//
// Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

// Of the sources: "91feaff", with "-dirty" where they had changes; "unknown" where they were in no
// repository. In a source file of its own, which each build writes (cmake/commit.cmake).
extern const std::string_view kCommit;
extern const std::string_view kVersion;  // "0.2.0"

// Several lines: version, commit, the CPU backend with the instruction set of its kernels, and
// whether the CUDA backend's module is there. Does not load the module.
std::string VersionText(const std::string& program);

}  // namespace kumo
