#include "common/checkpoint/origin.h"

#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr int kMostTexts = 200;
constexpr size_t kLongest = 300;

template <typename Texts>
void Shorten(const Texts& texts, Texts* out) {
  const int shown = texts.size() > kMostTexts ? kMostTexts - 1 : texts.size();
  for (int i = 0; i < shown; ++i) *out->Add() = Printable(texts[i], kLongest);
  if (shown < texts.size()) *out->Add() = "and " + std::to_string(texts.size() - shown) + " more";
}

}  // namespace

checkpoint::Origin Excerpt(const checkpoint::Origin& origin) {
  checkpoint::Origin excerpt;
  excerpt.set_tensors(origin.tensors());
  excerpt.set_tensors_taken(origin.tensors_taken());
  excerpt.set_checkpoint(Printable(origin.checkpoint(), kLongest));
  Shorten(origin.taken(), excerpt.mutable_taken());
  Shorten(origin.left(), excerpt.mutable_left());
  Shorten(origin.unused(), excerpt.mutable_unused());
  Shorten(origin.notes(), excerpt.mutable_notes());
  return excerpt;
}

std::vector<std::string> LinesOf(const checkpoint::Origin& origin) {
  std::vector<std::string> lines = {"starts with " + std::to_string(origin.tensors_taken()) +
                                    " of " + std::to_string(origin.tensors()) + " tensors from " +
                                    origin.checkpoint()};
  for (const std::string& left : origin.left()) lines.push_back("initialised as usual: " + left);
  for (const std::string& unused : origin.unused()) lines.push_back("not used: " + unused);
  for (const std::string& note : origin.notes()) lines.push_back("note: " + note);
  return lines;
}

}  // namespace kumo
