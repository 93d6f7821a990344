#include "base/driver_table.hpp"

#include "base/process/environment.hpp"

namespace ergotune {

std::vector<std::string> library_names(const char* variable, std::vector<std::string> usual) {
  if (auto name = environment_variable(variable); !name.empty()) return {std::move(name)};
  return usual;
}

std::string DriverTable::problem() const {
  if (!library_) return reason_;
  if (missing_.empty()) return {};
  std::string text = library_->name() + " lacks ";
  for (std::size_t i = 0; i < missing_.size(); ++i) text += (i ? ", " : "") + missing_[i];
  return text;
}

}  // namespace ergotune
