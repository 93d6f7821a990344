// Wrapper for the call of a host function: `void ergotune_call(void** arguments)`. It is compiled together with the
// user's source, so that the compiler passes each argument as the function expects it and reports mismatches between an
// argument's declaration and the function.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::host {

inline constexpr const char* kCallEntry = "ergotune_call";

/// Returns C or C++ text to append to the user's source. The text does not compile if the function takes another
/// numeric type than the declared one, such as double* for a float32 buffer, beyond whose end the kernel would read.
/// Types that the compiler cannot check (void*, structures, bytes) are passed unchanged. `untyped`: C arguments to pass
/// as void*, unchecked.
std::string call_in_source(const CompileJob& job, const std::set<std::size_t>& untyped = {});

/// A pointer that a C compiler rejected in the text of call_in_source().
struct RefusedPointer {
  std::size_t argument = 0;
  std::string wanted;  ///< "const double *"; empty if the message does not show it
  /// True if the function expects another numeric type; false for a structure or other type that no declaration can
  /// name.
  bool mismatch = false;
};
std::vector<RefusedPointer> refused_pointers(const CompileJob& job, const std::string& log);
/// Returns "argument 'x' is declared float32, but the function takes const double *".
std::string mismatch_message(const CompileJob& job, const RefusedPointer& pointer);

/// Returns the C type of an element.
const char* c_type(ElementType type);

/// Name of an additional unsigned 64-bit scalar, the last argument of a Fortran function that returns a real number. It
/// is not passed to the function: it is the address of a double that receives the returned value.
inline constexpr const char* kReturned = "ergotune_returned";

/// Returns a separate C source for Fortran, where arguments are passed by reference except for dummies with the value
/// attribute.
std::string call_of_fortran(const CompileJob& job);

/// Returns Fortran text to append to the source: a call that never runs, so that the compiler compares the declarations
/// with the procedure. Valid in free and fixed form. Empty if the source does not contain the procedure.
std::string check_in_fortran(const CompileJob& job);
/// Returns what is wrong with a declared argument, from the compiler's messages about that call (warnings of some
/// compilers); empty if nothing is. Non-numeric types (derived, logical, complex, bytes) are passed unchanged.
std::string mismatch_in_check(const CompileJob& job, const std::string& log);
/// True if the compiler's messages refer to that call.
bool mentions_check(const std::string& log);

}  // namespace ergotune::host
