// The values that parameters can take while a space is built: lists as given, ranges and generators worked
// out.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "space/build/generated.hpp"
#include "space/build/layer_builder.hpp"
#include "space/space_names.hpp"

namespace ergotune {

class ParameterLists {
 public:
  /// `parameters` get their value lists; they, and `names`, outlive this object, and this object the programs
  /// that candidates() was compiled into.
  ParameterLists(std::vector<Parameter>& parameters, SpaceNames& names) : parameters_(parameters), names_(names) {}

  /// Fills every value list (of ranges and generators the union of what they give) and names the parameters.
  /// Throws UserError.
  void resolve();
  /// Which values each parameter can take after a prefix, compiled.
  std::vector<Candidates> candidates(program::Program& program);

 private:
  void resolve_range(std::uint32_t parameter);
  void tabulate(std::uint32_t parameter, const ValueGenerator& generator);
  Candidates compile_range(program::Program& program, const DependentRange& range) const;

  std::vector<Parameter>& parameters_;
  SpaceNames& names_;
  std::vector<std::unique_ptr<TabulatedGenerator>> generators_;
  std::vector<std::optional<DependentRange>> ranges_;
};

}  // namespace ergotune
