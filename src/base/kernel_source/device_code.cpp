#include "base/kernel_source/device_code.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"

namespace ergotune::kernel_source {
namespace {

/// Of a declaration without a mark of device code.
enum class Kind { host, constant_function, type, namespaces };

struct Declaration {
  Part part;
  Identifiers names;  ///< by which device code may use it
  Identifiers used;
  Kind kind = Kind::host;
  bool kept = false;
};

/// Macros whose values mark device code, such as "#define DEVICE __device__ __forceinline__", and the marks themselves.
Identifiers marks_of(const Outline& outline) {
  Identifiers marks{"__device__", "__global__", "__constant__", "__shared__"};
  for (const Macro& macro : outline.macros)
    for (const char* mark : {"__device__", "__global__", "__constant__"})
      if (macro.value.find(mark) != std::string::npos) marks.insert(macro.name);
  return marks;
}

bool contains_any(const Identifiers& words, const Identifiers& wanted) {
  return std::ranges::any_of(words, [&](const std::string& word) { return wanted.contains(word); });
}

/// Returns the text behind "template <...>".
std::string_view without_template(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with("template")) return text;
  int depth = 0;
  for (std::size_t at = text.find('<'); at < text.size(); ++at) {
    depth += text[at] == '<' ? 1 : text[at] == '>' ? -1 : 0;
    if (depth == 0) return trimmed(text.substr(at + 1));
  }
  return text;
}

/// Whether a macro of a header may be among these, which may mark device code.
bool may_be_marked(const Identifiers& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.size() > 1 && std::ranges::none_of(word, [](unsigned char c) { return std::islower(c); });
  });
}

Kind kind_of(std::string_view head, bool is_function) {
  const Identifiers words = identifiers_in(head);
  if (is_function || head.substr(0, head.find('=')).find('(') != std::string_view::npos) {
    if (words.contains("constexpr") || may_be_marked(identifiers_in(head.substr(0, head.find('(')))))
      return Kind::constant_function;
    if (is_function) return Kind::host;
  }
  // namespaces in std, such as chrono, are of the host
  if (head.starts_with("using namespace"))
    return words.contains("std") && words.size() > 3 ? Kind::host : Kind::namespaces;
  static const Identifiers kKept{"constexpr", "const", "typedef", "using",    "struct",
                                 "class",     "union", "enum",    "namespace"};
  return contains_any(words, kKept) ? Kind::type : Kind::host;
}

/// The text before the first brace, without "template <...>".
std::string_view head_of(const std::string& text, const Part& part) {
  return without_template(std::string_view(text).substr(part.begin, part.brace - part.begin));
}

/// The outline's parts; what stands between the brace and the semicolon of "typedef struct { ... } Vector;" belongs to
/// the part before.
std::vector<Part> declarations_in(const std::string& text, const Outline& outline) {
  std::vector<Part> parts;
  for (Part part : outline.parts) {
    for (const char* type : {"struct ", "class ", "union ", "enum "})
      if (head_of(text, part).starts_with(type)) part.function.clear();  // struct alignas(16) Vector { ... }
    if (!parts.empty() && part.function.empty() && parts.back().function.empty() &&
        parts.back().brace < parts.back().end && text[parts.back().end - 1] == '}' && parts.back().end == part.begin &&
        part.brace == part.end)
      parts.back().end = part.end;
    else
      parts.push_back(std::move(part));
  }
  return parts;
}

Declaration declaration_of(const std::string& text, const Part& part, const Identifiers& marks) {
  const std::string_view whole = std::string_view(text).substr(part.begin, part.end - part.begin);
  const std::string_view head = head_of(text, part);
  Declaration found{part, {}, {}, Kind::host, false};
  found.used = identifiers_in(whole);
  found.kind = kind_of(head, !part.function.empty());
  found.kept = contains_any(part.function.empty() ? found.used : identifiers_in(head), marks);
  if (!part.function.empty())
    found.names = {part.function};
  else if (found.kind == Kind::type)
    // all of an enumeration and of "const int a = 1, b = 2;", not the members of a structure
    found.names = !found.used.contains("std") && (part.brace == part.end || head.find("enum") != std::string_view::npos)
                      ? found.used
                      : identifiers_in(head.substr(0, head.find('=')));
  if (const std::size_t behind = whole.rfind('}'); found.kind == Kind::type && behind != std::string_view::npos)
    found.names.merge(identifiers_in(whole.substr(behind)));
  for (const char* keyword : {"constexpr", "const",  "typedef", "using",    "struct", "class", "union", "enum",
                              "namespace", "static", "inline",  "unsigned", "signed", "int",   "float", "double",
                              "char",      "long",   "short",   "bool",     "void",   "auto",  "std",   "size_t"})
    found.names.erase(keyword);
  return found;
}

/// Keeps what is named by what is kept.
void keep_used(std::vector<Declaration>& declarations, const std::vector<Macro>& macros, Identifiers used) {
  const auto use = [&](const Declaration& one) { used.insert(one.used.begin(), one.used.end()); };
  for (const Declaration& one : declarations)
    if (one.kept) use(one);
  for (bool grows = true; grows;) {
    const std::size_t before = used.size();
    for (const Macro& macro : macros)
      if (used.contains(macro.name)) used.merge(identifiers_in(macro.value));
    for (Declaration& one : declarations)
      if (!one.kept && one.kind != Kind::host && (one.kind == Kind::namespaces || contains_any(one.names, used))) {
        one.kept = true;
        use(one);
      }
    grows = used.size() > before;
  }
}

}  // namespace

/// Keeps each static_assert, which may forbid a configuration, with what it names, unless that is of the host.
void keep_assertions(const std::string& text, std::vector<Declaration>& declarations) {
  for (Declaration& assertion : declarations) {
    if (!head_of(text, assertion.part).starts_with("static_assert") || assertion.used.contains("std")) continue;
    std::vector<Declaration*> named;
    for (Declaration& other : declarations)
      if (!other.kept && contains_any(assertion.used, other.names)) named.push_back(&other);
    if (std::ranges::any_of(
            named, [](const Declaration* one) { return one->kind == Kind::host || one->used.contains("std"); }))
      continue;
    assertion.kept = true;
    for (Declaration* one : named) one->kept = true;
  }
}

std::string device_code_of(std::string_view source, const Identifiers& used) {
  const std::string text = blank_comments(source);
  const Outline outline = outline_of(source);
  if (!outline.whole) return std::string(source);
  const Identifiers marks = marks_of(outline);
  std::vector<Declaration> declarations;
  for (const Part& part : declarations_in(text, outline)) declarations.push_back(declaration_of(text, part, marks));
  keep_used(declarations, outline.macros, used);
  keep_assertions(text, declarations);
  keep_used(declarations, outline.macros, used);
  std::string result(source);
  std::string kept;
  for (const Declaration& one : declarations) {
    if (one.kept) kept += text.substr(one.part.begin, one.part.end - one.part.begin);
    bool directive = false;
    for (std::size_t at = one.part.begin; at < one.part.end && !one.kept; ++at) {
      const bool continued = at > 0 && text[at] == '\n' && text[at - 1] == '\\';
      if (text[at] == '#') directive = true;  // conditions remain in pairs
      if (text[at] == '\n' && !continued) directive = false;
      if (text[at] != '\n' && !directive) result[at] = ' ';
    }
  }
  constexpr std::string_view kThrust = "<thrust/";
  for (std::size_t at = 0; (at = text.find(kThrust, at)) != std::string::npos; ++at) {
    const std::size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find('\n', at), text.size());
    if (trimmed(std::string_view(text).substr(begin, end - begin)).starts_with('#') &&
        !identifiers_in(kept).contains("thrust"))
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(begin), result.begin() + static_cast<std::ptrdiff_t>(end),
                ' ');
  }
  return result;
}

}  // namespace ergotune::kernel_source
