// What names mean while a space is built: its parameters, so far, and the constants.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ergotune/space.hpp"
#include "space/expression/program.hpp"

namespace ergotune {

class SpaceNames {
 public:
  /// Both outlive this object; no parameter is known before add().
  SpaceNames(const std::vector<Parameter>& parameters, const Constants& constants)
      : parameters_(parameters), constants_(constants) {}

  void add(std::uint32_t parameter) { index_.emplace(parameters_[parameter].name, parameter); }
  const Value* constant(std::string_view name) const;
  std::optional<std::uint32_t> parameter(std::string_view name) const;
  bool knows(std::string_view name) const { return parameter(name) || constant(name) != nullptr; }
  const Constants& constants() const { return constants_; }
  program::NameTable table() const;
  /// Throws the UserError for a name that is none of them. `where`: "the restriction ...".
  [[noreturn]] void unknown(const std::string& name, const std::string& where, const SourcePlace& place) const;

 private:
  const std::vector<Parameter>& parameters_;
  const Constants& constants_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
};

}  // namespace ergotune
