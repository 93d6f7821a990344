#include "search/inactive_parameters.hpp"

#include <cmath>
#include <limits>

namespace ergotune::search {

InactiveParameters::InactiveParameters(const SearchSpace& space)
    : space_(space),
      scratch_(space.dimensions()),
      equal_(space.dimensions()),
      different_(space.dimensions()),
      idle_(space.dimensions(), false) {}

InactiveParameters::Key InactiveParameters::key(const std::uint32_t* positions) const {
  Key mixed = 0x243F6A8885A308D3ull;
  for (std::size_t p = 0; p < idle_.size(); ++p) {
    mixed = (mixed ^ (idle_[p] ? 0 : positions[p] + 1)) * 0x9E3779B97F4A7C15ull;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

void InactiveParameters::observe(ConfigurationIndex index, bool ok, double value) {
  if (!known_.insert(index).second) return;
  constexpr double kSame = 1e-4;
  const std::size_t width = space_.dimensions();
  space_.values_at(index, scratch_);
  bool changed = false;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::uint32_t* other = positions_.data() + i * width;
    std::size_t differences = 0, where = 0;
    for (std::size_t p = 0; p < width && differences < 2; ++p)
      if (other[p] != scratch_[p]) {
        ++differences;
        where = p;
      }
    if (differences != 1) continue;
    const bool other_ok = std::isfinite(values_[i]);
    if (!ok && !other_ok) continue;  // both beyond a limit: no information
    const bool same = ok && other_ok && std::abs(value - values_[i]) <= kSame * std::abs(value);
    ++(same ? equal_ : different_)[where];
    changed = true;
  }
  positions_.insert(positions_.end(), scratch_.begin(), scratch_.end());
  values_.push_back(ok ? value : std::numeric_limits<double>::infinity());
  if (changed) {
    std::vector<bool> now(width);
    for (std::size_t p = 0; p < width; ++p) now[p] = idle(p);
    changed = now != idle_;
    idle_ = std::move(now);
  }
  if (changed) {
    keys_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i) keys_.insert(key(positions_.data() + i * width));
  } else {
    keys_.insert(key(positions_.data() + (values_.size() - 1) * width));
  }
}

bool InactiveParameters::twin(ConfigurationIndex index) {
  space_.values_at(index, scratch_);
  return keys_.count(key(scratch_.data())) > 0;
}

}  // namespace ergotune::search
