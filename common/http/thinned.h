// A series that is never too long: when it is full, each two neighbours become one, and from then
// on twice as many additions make a point. So it always spans everything that was added, evenly.
//
//   T: void Merge(const T& later);
//
// A value; one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace kumo {

template <typename T>
class Thinned {
 public:
  // most: points that are kept; even, 2 at least. One more is under way.
  explicit Thinned(size_t most) : most_(most) {}

  void Add(const T& one) {
    if (open_) {
      open_->Merge(one);
    } else {
      open_ = one;
    }
    if (++in_open_ < each_) return;
    points_.push_back(*open_);
    open_.reset();
    in_open_ = 0;
    if (points_.size() >= most_) Halve();
  }

  // In order; the last may be of fewer additions than the others.
  std::vector<T> points() const {
    std::vector<T> all = points_;
    if (open_) all.push_back(*open_);
    return all;
  }
  // How many additions make a point.
  size_t each() const { return each_; }

 private:
  void Halve() {
    for (size_t i = 0; i + 1 < points_.size(); i += 2) {
      points_[i].Merge(points_[i + 1]);
      points_[i / 2] = points_[i];
    }
    points_.resize(points_.size() / 2);
    each_ *= 2;
  }

  size_t most_;
  size_t each_ = 1, in_open_ = 0;
  std::vector<T> points_;
  std::optional<T> open_;
};

}  // namespace kumo
