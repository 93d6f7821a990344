// The call of a host function: a function `void ergotune_call(void** arguments)` that is compiled along with
// the user's source, so that the compiler itself passes every argument as the function wants it, and says so where an
// argument's declaration and the function disagree.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::host {

inline constexpr const char* kCallEntry = "ergotune_call";

/// C or C++ text to be put behind the user's source. A buffer of doubles that is declared float32 does not compile:
/// the kernel would read beyond its end. What the compiler cannot see (void*, structures, bytes) is passed as it is.
/// `untyped`: C arguments to be passed as void*, unchecked.
std::string call_in_source(const CompileJob& job, const std::set<std::size_t>& untyped = {});

/// A pointer that a C compiler refused in call_in_source()'s text.
struct RefusedPointer {
  std::size_t argument = 0;
  std::string wanted;  ///< "const double *"; empty where the words do not tell
  /// The function wants other numbers. False: a structure or the like, which no declaration can name.
  bool mismatch = false;
};
std::vector<RefusedPointer> refused_pointers(const CompileJob& job, const std::string& words);
/// "argument 'x' is declared float32, but the function takes const double *".
std::string mismatch_message(const CompileJob& job, const RefusedPointer& pointer);

/// The C type of an element.
const char* c_type(ElementType type);

/// An unsigned 64-bit scalar of this name, the last argument of a Fortran function that returns a real number, is no
/// argument of the function's: it is the address of a double that takes what the function returns.
inline constexpr const char* kReturned = "ergotune_returned";

/// C text of its own for Fortran, where arguments go by reference but for dummies with the value attribute.
std::string call_of_fortran(const CompileJob& job);

/// Fortran text to be put behind the source: a call that never happens, so that the compiler compares what is declared
/// with what the procedure takes. Valid in free and in fixed form. Empty where the source does not show the procedure.
std::string check_in_fortran(const CompileJob& job);
/// What is wrong with a declared argument, from what the compiler says of that call (some say it as a warning); empty
/// where nothing is: other types than numbers (derived, logical, complex, bytes) are passed as they are.
std::string refusal_of_check(const CompileJob& job, const std::string& log);
/// The compiler has said something of that call.
bool speaks_of_check(const std::string& log);

}  // namespace ergotune::host
