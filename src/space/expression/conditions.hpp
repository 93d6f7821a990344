// Restrictions as conditions of the program, for the space builder.
#pragma once

#include <vector>

#include "ergotune/error.hpp"
#include "space/build/builder.hpp"
#include "space/build/layer_builder.hpp"
#include "space/build/parameter_lists.hpp"

namespace ergotune {

class Conditions {
 public:
  /// All arguments must outlive this object, and this object must outlive the program's calls.
  Conditions(program::Program& program, const std::vector<Restriction>& restrictions, const SpaceNames& names,
             BuildPurpose purpose)
      : program_(program), restrictions_(restrictions), names_(names), table_(names.table()), purpose_(purpose) {}

  /// Throws UserError for an unknown name, and for a restriction on constants that cannot be evaluated.
  void compile();
  /// The conditions, which must all hold; sorted, without duplicates and constants.
  const std::vector<program::OperationId>& all() const { return conditions_; }
  /// Conditions under which some restriction cannot be evaluated (only for a space that is to be used).
  const std::vector<program::OperationId>& failures() const { return failures_; }
  /// True if no configuration can satisfy the restrictions.
  bool impossible() const { return impossible_; }

  /// Returns the error for a configuration for which some restriction cannot be evaluated.
  UserError explain_failure(const Component& component, const UnevaluableConfiguration& configuration) const;

 private:
  void compile(const Restriction& restriction);
  std::vector<std::uint32_t> inputs_of(const Restriction& restriction) const;
  std::string where(const Restriction& restriction) const;
  bool holds(const Restriction& restriction, const Scope& scope) const;
  program::Compiled opaque(const Restriction& restriction, const std::vector<std::uint32_t>& inputs);
  void require(const program::Compiled& part);

  program::Program& program_;
  const std::vector<Restriction>& restrictions_;
  const SpaceNames& names_;
  program::NameTable table_;
  BuildPurpose purpose_;
  std::vector<program::OperationId> conditions_, failures_;
  bool impossible_ = false;
};

}  // namespace ergotune
