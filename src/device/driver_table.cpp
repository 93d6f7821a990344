#include "device/driver_table.hpp"

namespace ergotune {

std::string DriverTable::problem() const {
  if (!library_) return reason_;
  if (missing_.empty()) return {};
  std::string text = library_->name() + " lacks ";
  for (std::size_t i = 0; i < missing_.size(); ++i) text += (i ? ", " : "") + missing_[i];
  return text;
}

}  // namespace ergotune
