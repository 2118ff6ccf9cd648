#include "common/settings/choices.h"

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kCuda = "cuda";

constexpr Choice<ResumeFrom::Kind> kResumeWords[] = {{ResumeFrom::Kind::kAuto, "auto"},
                                                     {ResumeFrom::Kind::kNever, "never"},
                                                     {ResumeFrom::Kind::kMust, "must"}};

// Digits alone; none for a number of more than `most_digits`.
std::optional<uint64_t> FindNumber(std::string_view text, size_t most_digits) {
  return text.size() > most_digits ? std::nullopt : ParseNumber<uint64_t>(text);
}

}  // namespace

std::string Device::ToString() const {
  if (is_cpu()) return std::string(kCpu);
  return std::string(kCuda) + (number ? ":" + std::to_string(*number) : "");
}

std::optional<Device> FindDevice(std::string_view text) {
  if (text == kCpu) return Device{};
  if (text == kCuda) return Device{Device::Kind::kCuda};
  if (!text.starts_with("cuda:")) return std::nullopt;
  const auto number = FindNumber(text.substr(kCuda.size() + 1), 9);
  if (!number) return std::nullopt;
  return Device{Device::Kind::kCuda, static_cast<int>(*number)};
}

std::string ResumeFrom::ToString() const {
  for (const auto& choice : kResumeWords) {
    if (choice.value == kind) return std::string(choice.word);
  }
  return std::to_string(round);
}

std::optional<ResumeFrom> FindResumeFrom(std::string_view text) {
  for (const auto& choice : kResumeWords) {
    if (choice.word == text) return ResumeFrom{choice.value};
  }
  const auto round = FindNumber(text, 18);
  if (!round) return std::nullopt;
  return ResumeFrom{ResumeFrom::Kind::kRound, static_cast<int64_t>(*round)};
}

}  // namespace kumo
