#include "kernel/macro_clashes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/kernel_source/device_code.hpp"
#include "base/kernel_source/outline.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {
namespace {

bool occurs_in(const std::string& text, const std::string& name) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end]))) return true;
  }
  return false;
}

/// Collects all strings of a document except below keys that mention parameters without depending on them.
void add_strings(const nlohmann::json& document, std::string& text) {
  if (document.is_string()) text += document.get_ref<const std::string&>() + "\n";
  if (document.is_array())
    for (const auto& item : document) add_strings(item, text);
  if (!document.is_object()) return;
  for (const auto& [key, item] : document.items()) {
    if (key == "restrictions" || key == "metrics" || key == "objective" || key == "plans" || key == "simulation")
      continue;
    if (key != "parameters") text += key + "\n";  // the range of a parameter may use other parameters
    add_strings(item, text);
  }
}

}  // namespace

std::vector<std::string> unused_parameters(const Problem& problem) {
  if (problem.program) return {};
  for (const Kernel& kernel : problem.kernels) {
    if (kernel.sources.empty()) return {};  // a search space without code
    for (const KernelSource& source : kernel.sources)
      if (source.text.find("#include \"") != std::string::npos) return {};
  }
  ProblemFile all = problem;
  for (Parameter& parameter : all.parameters) parameter.name = "?";
  std::string text;
  add_strings(nlohmann::json::parse(serialise(all)), text);
  std::vector<std::string> unused;
  for (const Parameter& parameter : problem.parameters) {
    const std::string name = parameter.name.substr(parameter.name.rfind('.') + 1);  // "kernel.BLOCK" -> "BLOCK"
    if (parameter.kind == ParameterKind::code && parameter.values.size() > 1 && !occurs_in(text, name))
      unused.push_back(parameter.name);
  }
  return unused;
}

std::vector<std::string> unused_parameter_notes(const Problem& problem) {
  std::vector<std::string> notes = unused_parameters(problem);
  for (std::string& note : notes)
    note = "the parameter " + note +
           " changes nothing: its name occurs in no source, option, argument or launch of the problem";
  return notes;
}

namespace {

struct Token {
  std::string_view text;
  int line = 1, column = 1;
};

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Returns names, numbers and single characters, without comments, strings and preprocessor lines; names in
/// preprocessor lines are added to `known`.
std::vector<Token> tokens_of(std::string_view text, std::set<std::string, std::less<>>& known) {
  std::vector<Token> tokens;
  int line = 1;
  std::size_t line_start = 0;
  bool at_line_start = true, directive = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      directive = directive && i > 0 && text[i - 1] == '\\';
      at_line_start = true;
      ++line;
      line_start = ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      for (; i < end; ++i) {
        if (text[i] != '\n') continue;
        ++line;
        line_start = i + 1;
      }
    } else if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i) i += text[i] == '\\';
      if (i < text.size() && text[i] == c) ++i;
      at_line_start = false;
    } else {
      std::size_t end = i + 1;
      if (in_name(c)) {
        while (end < text.size() && in_name(text[end])) ++end;
      }
      if (at_line_start && c == '#') directive = true;
      at_line_start = false;
      if (!directive) {
        tokens.push_back({text.substr(i, end - i), line, static_cast<int>(i - line_start) + 1});
      } else if (begins_name(c)) {
        known.emplace(text.substr(i, end - i));
      }
      i = end;
    }
  }
  return tokens;
}

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::ranges::find(list, text) != list.end();
}

/// True for words after which a name is not a declaration.
bool is_statement_word(std::string_view word) {
  return one_of(word, std::to_array<std::string_view>({"return", "else", "case", "goto", "do", "sizeof", "throw", "new",
                                                       "delete", "typename", "and", "or", "not"}));
}

bool is_type_word(std::string_view word) {
  return one_of(word, std::to_array<std::string_view>(
                          {"int",    "unsigned", "signed", "char", "short",    "long",         "float",
                           "double", "half",     "bool",   "void", "size_t",   "uint",         "uchar",
                           "ushort", "ulong",    "const",  "auto", "restrict", "__restrict__", "__restrict"}));
}

/// Returns the token after the ">" of the template arguments whose "<" is at `open`; `open` if that "<" is a
/// comparison.
std::size_t after_template_arguments(const std::vector<Token>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const char c = tokens[i].text.front();
    if (c == ';' || c == '{' || c == '}') return open;
    depth += c == '<';
    depth -= c == '>';
    if (depth == 0) return i + 1 < tokens.size() && tokens[i + 1].text == "(" ? i + 1 : open;
  }
  return open;
}

}  // namespace

std::vector<MacroClash> macro_clashes(const KernelSource& source, const std::vector<std::string>& macros) {
  if (source.language == Language::fortran) return {};
  std::set<std::string, std::less<>> known, met;
  const std::string text =
      source.language == Language::cuda
          ? kernel_source::device_code_of(kernel_source::source_with_macro(source.text, "__CUDACC_RTC__"))
          : source.text;
  const std::vector<Token> tokens = tokens_of(text, known);
  std::vector<MacroClash> clashes;
  const auto declare = [&](const Token& token) {
    const std::string name(token.text);
    if (known.contains(name) || std::ranges::find(macros, name) == macros.end()) return;
    if (!met.insert(name).second) return;
    clashes.push_back({name, {source.file.empty() ? "kernel" : source.file.string(), token.line, token.column}});
  };
  // "int i = 0, k;": a declaration continues after each comma until its end.
  bool declaring = false;
  int depth = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::string_view before = tokens[i - 1].text, here = tokens[i].text;
    const char last = before.front();
    if (before == ";" || before == "{" || before == "}") declaring = false;
    if (declaring && here == "<" && begins_name(last)) {  // "T x = f<m / 2, n == 1>(y);"
      i = after_template_arguments(tokens, i);
      if (i == tokens.size()) break;
      continue;
    }
    if (declaring) {
      depth += before == "(" || before == "[";
      depth -= before == ")" || before == "]";
      declaring = depth >= 0;
    }
    if (!begins_name(here.front()) || is_type_word(here)) continue;
    bool declares = begins_name(last) && !is_statement_word(before);
    if (!declares && (last == '*' || last == '&')) {
      std::size_t type = i - 1;
      while (type > 0 && (tokens[type].text == "*" || tokens[type].text == "&")) --type;
      declares = is_type_word(tokens[type].text);
    }
    // "const T* a", "global T x": a name before another name or a star is a type, which may be a macro
    if (i + 1 < tokens.size()) {
      const char next = tokens[i + 1].text.front();
      if (begins_name(next) || next == '*' || next == '&') declares = false;
    }
    if (declares) {
      declaring = true;
      depth = 0;
    }
    // a declarator, not a template argument: "T x = f<m / 2, n>();"
    const bool ends_name = i + 1 == tokens.size() ||
                           std::string_view("=;,[({:)").find(tokens[i + 1].text.front()) != std::string_view::npos;
    if (declares || (declaring && depth == 0 && before == "," && ends_name)) declare(tokens[i]);
  }
  return clashes;
}

}  // namespace ergotune
