#include "problem/draft/undefined_names.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "base/kernel_source/signature.hpp"
#include "base/text.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::in_identifier;

bool is_type(std::string_view word) {
  static const std::set<std::string_view> kTypes{
      "const", "constexpr", "unsigned", "signed", "int",  "long",   "short", "char",    "float",  "double",
      "bool",  "auto",      "size_t",   "half",   "uint", "ushort", "uchar", "ulong",   "static", "void",
      "real",  "volatile",  "register", "extern", "enum", "struct", "class", "typename"};
  while (!word.empty() && std::isdigit(static_cast<unsigned char>(word.back()))) word.remove_suffix(1);
  return kTypes.contains(word) || word.ends_with("_t");
}

/// True for words that cannot precede a name that is being declared.
bool is_statement(std::string_view word) {
  static const std::set<std::string_view> kWords{"return", "else", "case", "sizeof", "goto", "throw", "do", "unroll"};
  return kWords.contains(word);
}

/// True for names defined by a language, a compiler or a standard header.
bool is_predefined(std::string_view name) {
  static const std::set<std::string_view> kNames{"NULL",      "TRUE",   "FALSE",    "INFINITY", "NAN",
                                                 "MAXFLOAT",  "NDEBUG", "EOF",      "RAND_MAX", "HUGE_VAL",
                                                 "HUGE_VALF", "WIN32",  "CLK_LOCAL"};
  if (kNames.contains(name) || name.starts_with('_')) return true;
  for (const char* prefix :
       {"CLK_",   "CL_",    "CUDA_",  "CUDART_", "FLT_",    "DBL_",    "LDBL_",    "INT_",  "UINT_", "LONG_",
        "ULONG_", "CHAR_",  "SHRT_",  "SCHAR_",  "UCHAR_",  "USHRT_",  "LLONG_",   "HALF_", "INT8_", "INT16_",
        "INT32_", "INT64_", "UINT8_", "UINT16_", "UINT32_", "UINT64_", "SIZE_MAX", "M_"})
    if (name.starts_with(prefix)) return true;
  return name.starts_with("FP_") && name.size() < 12;
}

/// True for names that look like macros: capitals, or the names used with Kernel Tuner.
bool is_candidate(std::string_view name) {
  for (const char* prefix : {"block_size_", "tile_size_", "loop_unroll_factor_"})
    if (name.starts_with(prefix)) return true;
  const auto capital = [](unsigned char c) { return std::isupper(c) || std::isdigit(c) || c == '_'; };
  return std::isupper(static_cast<unsigned char>(name.front())) && std::all_of(name.begin(), name.end(), capital);
}

struct Occurrences {
  std::size_t first = 0, all = 0, conditions = 0, ifdefs = 0, types = 0, schedules = 0, unrolls = 0;
  bool declared = false;
};

/// Examines each occurrence of a candidate.
class Scan {
 public:
  explicit Scan(std::string text) : text_(std::move(text)) {
    std::string directive;
    for (std::size_t at = 0; at < text_.size();) {
      if (text_[at] == '\n') directive.clear();
      if (text_[at] == '#') directive = word_behind(at + 1);
      const std::size_t end = kernel_source::end_of_identifier(text_, at);
      if (end > at && !std::isdigit(static_cast<unsigned char>(text_[at])) &&
          is_candidate(std::string_view(text_).substr(at, end - at)))
        look(at, end, directive);
      at = std::max(end, at + 1);
    }
    for (std::size_t at = 0; (at = text_.find("enum", at)) != std::string::npos; ++at) {
      const std::size_t open = text_.find('{', at), close = text_.find('}', at);
      if (open == std::string::npos || close == std::string::npos || text_.find(';', at) < open) continue;
      for (const auto& name : kernel_source::identifiers_in(text_.substr(open, close - open)))
        found[name].declared = true;
    }
  }

  std::map<std::string, Occurrences> found;

 private:
  std::string word_behind(std::size_t at) const {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    return text_.substr(at, kernel_source::end_of_identifier(text_, at) - at);
  }

  /// Returns the position of the last non-blank character before `at`; npos at the beginning.
  std::size_t before(std::size_t at) const {
    return at == 0 ? std::string::npos : text_.find_last_not_of(" \t\n", at - 1);
  }

  /// Returns the identifier that ends at `at`; empty if there is none.
  std::string_view word_at_end(std::size_t at) const {
    if (at == std::string::npos) return {};
    std::size_t begin = at + 1;
    while (begin > 0 && in_identifier(text_[begin - 1])) --begin;
    return std::string_view(text_).substr(begin, at + 1 - begin);
  }

  void look(std::size_t at, std::size_t end, const std::string& directive) {
    Occurrences& name = found[text_.substr(at, end - at)];
    if (name.all++ == 0) name.first = at;
    const std::size_t previous = before(at), next = text_.find_first_not_of(" \t", end);
    const char left = previous == std::string::npos ? '\n' : text_[previous];
    const char right = next == std::string::npos ? '\n' : text_[next];
    const char behind = next == std::string::npos || next + 1 >= text_.size() ? '\n' : text_[next + 1];
    if (directive == "ifdef" || directive == "ifndef" || defined_before(previous)) {
      ++name.ifdefs;
      return;
    }
    if (directive == "define" || directive == "undef" || directive == "include") {
      // "#define A 3" declares A, "#define AREA (A * A)" uses it
      name.declared = name.declared || word_at_end(previous) == directive;
      return;
    }
    const bool compared = ((right == '=' || right == '!') && behind == '=') || ((right == '<' || right == '>')) ||
                          std::string("+-*/%").find(right) != std::string::npos;
    if (directive == "if" || directive == "elif") {
      const bool left_compared =
          previous != std::string::npos && std::string("<>=+-*/%").find(left) != std::string::npos;
      name.conditions += !compared && !left_compared;
      return;
    }
    if (directive == "pragma") {
      name.declared = name.declared || word_at_end(previous) == directive;  // GCC, omp: a compiler's own word
      name.unrolls += word_at_end(previous) == "unroll" || word_at_end(before(previous)) == "unroll";
      name.schedules += left == '(' && word_at_end(before(previous)) == "schedule";
      return;
    }
    if (right == '(' || left == '.' || (right == ':' && behind == ':') || left == ':' ||
        (left == '>' && previous > 0 && text_[previous - 1] == '-')) {
      name.declared = true;  // called, a member, or qualified
      return;
    }
    if (in_identifier(left)) {
      const std::string_view word = word_at_end(previous);
      const bool number = std::isdigit(static_cast<unsigned char>(word.front()));
      if (!number && !is_statement(word) && (!is_candidate(word) || is_type(word))) name.declared = true;
    } else if ((left == '*' || left == '&') && is_type(word_at_end(before(previous)))) {
      name.declared = true;
    } else if (left == ',' && std::string("=,;[").find(right) != std::string::npos && behind != '=' &&
               in_declaration(at)) {
      name.declared = true;
    }
    if (right == '=' && behind != '=') name.declared = true;
    if (in_identifier(right) || (right == '*' && is_pointer_declaration(at, next))) ++name.types;
    const bool asked = (left == '(' && right == ')' && word_at_end(before(previous)) == "if") || right == '?' ||
                       left == '!' || (left == '(' && right == '&' && behind == '&') ||
                       (left == '&' && previous > 0 && text_[previous - 1] == '&' && !compared);
    name.conditions += asked;
  }

  bool defined_before(std::size_t previous) const {
    if (previous == std::string::npos) return false;
    if (text_[previous] == '(') previous = before(previous);
    return word_at_end(previous) == "defined";
  }

  /// True for a name in "int M, N;", whose statement begins with a type.
  bool in_declaration(std::size_t at) const {
    std::size_t begin = text_.find_last_of(";{}()", at);
    begin = begin == std::string::npos ? 0 : begin + 1;
    begin = text_.find_first_not_of(" \t\n", begin);
    if (begin == std::string::npos || begin >= at) return false;
    // "const T t = f<A, B>(c)" uses B, it does not declare it
    return is_type(word_behind(begin)) && text_.substr(begin, at - begin).find_first_of("=<") == std::string::npos;
  }

  /// True for "REAL* x" at the beginning of a statement or a parameter.
  bool is_pointer_declaration(std::size_t at, std::size_t star) const {
    const std::size_t name = text_.find_first_not_of("* \t", star);
    if (name == std::string::npos || !in_identifier(text_[name])) return false;
    const std::size_t previous = before(at);
    if (previous == std::string::npos || text_[previous] == ';' || text_[previous] == '{') return true;
    const std::string_view word = word_at_end(previous);
    return word == "const" || word == "global" || word == "__global" || word == "local" || word == "__local";
  }

  const std::string text_;
};

}  // namespace

std::vector<UndefinedName> undefined_names(const std::string& source, const std::vector<std::string>& folders,
                                           const kernel_source::Outline& outline,
                                           const kernel_source::Identifiers& used) {
  const std::string text = kernel_source::blank_comments(source);
  std::set<std::string> known;
  for (const auto& macro : outline.macros) known.insert(macro.name);
  for (const auto& function : outline.functions) {
    known.insert(function.name);
    for (const auto& parameter : kernel_source::parameters_of(function.parameters, true)) known.insert(parameter.name);
  }
  for (const IncludedFile& header : included_files(source, folders))
    for (const auto& name : kernel_source::identifiers_in(header.text)) known.insert(name);
  for (const std::size_t behind : ends_of(text, "struct", text.size()))  // struct alignas(16) P { ... };
    if (const std::size_t open = text.find_first_of("{;", behind); open != std::string::npos && text[open] == '{')
      for (const auto& name : kernel_source::identifiers_in(text.substr(behind, open - behind))) known.insert(name);
  const Scan scan(text);
  std::vector<std::pair<std::size_t, UndefinedName>> found;
  for (const auto& [name, seen] : scan.found) {
    if (seen.declared || seen.all == 0 || known.contains(name) || is_predefined(name)) continue;
    const bool in_directives = seen.conditions + seen.ifdefs + seen.unrolls + seen.schedules == seen.all;
    if (!used.contains(name) && !in_directives) continue;  // used only by another kernel
    found.push_back({seen.first,
                     {name, seen.conditions == seen.all, seen.ifdefs == seen.all, seen.types > 0, seen.schedules > 0,
                      seen.unrolls > 0}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<UndefinedName> names;
  for (auto& [at, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace ergotune::draft
