// A CUDA kernel's parameters as far as its mangled name or its source tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune::kernel_source {

struct Parameter {
  std::string type;  ///< without const and stars: "float"
  std::string name;  ///< empty where it is not known
  bool pointer = false;
  bool constant = false;  ///< what it points to
};

/// "void f<4>(float const*, int)" or "__global__ void f(const float* __restrict__ x, int n)": what stands between the
/// parentheses, split at commas outside of brackets.
std::vector<Parameter> parameters_of(std::string_view list, bool with_names);

/// The parameters in the source of the function `name`, behind __global__; nullopt where it is not found, or looks like
/// a macro's work.
std::optional<std::vector<Parameter>> parameters_in_source(std::string_view source, std::string_view name);

/// "void at::f<4, A<float> >(int, float*)" -> name "f", list "int, float*"; list is empty for an unmangled name.
struct Demangled {
  std::string whole, name, list;
};
Demangled demangled(const std::string& symbol);

}  // namespace ergotune::kernel_source
