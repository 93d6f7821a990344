// Names of a source and what stands for them in its problem: constants, parameters and numbers.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "problem/draft/draft_source.hpp"
#include "problem/draft/problem_draft.hpp"
#include "problem/draft/undefined_names.hpp"

namespace ergotune::draft {

/// What a draft had to guess.
struct Guesses {
  std::string remarks;  ///< guesses that belong to no line; they are written at the head of the file
  std::vector<std::string> questions;

  /// Records a guess and returns the comment that marks it: "  # CHECK: ...". `subject`: the subject of the line.
  std::string check(const std::string& what, const std::string& subject = "") {
    questions.push_back(subject.empty() ? what : subject + ": " + what);
    return fmt::format("  {}{}", kGuessMark, what);
  }
  void ask(const std::string& what) { remarks += check(what).substr(2) + "\n"; }
};

struct ProblemNames {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  kernel_source::Identifiers used;                  ///< identifiers of the kernel, which no constant may have
  std::string function;                             ///< the kernel's name with its template arguments
  TypeNames types;                                  ///< with template parameters and macros that are types
  Pairs sizes = {};                                 ///< name in the source, constant of the problem
  bool substitute = false;                          ///< the only size stands for what the source does not name
  std::vector<UndefinedName> undefined = {};        ///< macros that become parameters, whose values are to be proposed
  std::vector<std::string> unbound = {};            ///< sizes that do not occur in the body
  std::map<std::string, long> given = {};           ///< sizes whose values are in the source
  std::map<std::string, std::string> scalars = {};  ///< other integer scalars and their constants
  std::map<std::string, long> fixed = {};           ///< macros whose value is fixed in the source
  std::map<std::string, std::string> template_parameters = {};  ///< and their parameters of the problem
  std::map<std::string, std::string> launched =
      {};                                          ///< numbers and names that the launch passes for template parameters
  std::map<std::string, std::string> unread = {};  ///< what marks of macros say of values that were not understood
  std::set<std::string> guarded = {};  ///< macros that the compiler's command line may set and whose names are of sizes
  std::set<std::string> tunable = {};
  std::set<std::string> allocated = {};   ///< template parameters and macros that the host's allocations multiply by
  Pairs constants = {}, parameters = {};  ///< names and values as the problem file writes them

  /// Returns a name for a constant or a parameter. It becomes a macro, so it must not occur in the kernel's source.
  std::string macro_name(const std::string& name, const char* suffix) const;
  std::string add_size(const std::string& name);
  void add_parameter(const std::string& name, const std::string& values);
  bool has_parameter(const std::string& name) const;
  /// Returns the whole numbers among the values of a parameter.
  std::vector<long> values_of(const std::string& parameter) const;

  std::string size(std::size_t dimension) const;
  /// Returns the constant for a size of the source; the name itself if it is a macro.
  std::string size_named(const std::string& name) const;
  /// Returns the first size in a text such as "nx - 1" or "std::min(n, i + TILE)"; empty if there is none.
  std::string size_in(const std::string& text) const;
  /// Returns the size that bounds a variable; empty if the body does not show it.
  std::string bound(const KernelUse& use, const std::string& variable, int depth = 0) const;
  /// Returns the source's name of a size; nullptr if the constant is none.
  const std::string* source_of(const std::string& constant) const;
  /// Whether there are two sizes, or the body multiplies by the only one, as for rows of a matrix.
  bool is_plane(const std::string& body) const;
  std::string in_expressions(const std::string& name) const;
};

}  // namespace ergotune::draft
