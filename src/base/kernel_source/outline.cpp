#include "base/kernel_source/outline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/kernel_source/identifiers.hpp"
#include "base/text.hpp"

namespace ergotune::kernel_source {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

/// Returns the end of a preprocessor directive, including continued lines.
std::size_t end_of_directive(std::string_view text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  while (end != std::string_view::npos && end > 0 && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

/// Splits the text before a body into head, name and parameters; the name is empty if it does not declare a function.
Function function_of(std::string_view text) {
  Function function;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ')') --depth;
    if (text[at] != '(' || depth++ != 0) continue;
    std::size_t end = at;
    while (end > 0 && is_blank(text[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && in_identifier(text[begin - 1])) --begin;
    const std::string_view name = text.substr(begin, end - begin);
    if (name.empty() || name == "__attribute__" || name == "__launch_bounds__" || name == "__cluster_dims__") continue;
    std::size_t close = at;
    for (int open = 0; close < text.size(); ++close) {
      if (text[close] == '(') ++open;
      if (text[close] == ')' && --open == 0) break;
    }
    function.name = name;
    function.head = trimmed(text.substr(0, begin));
    function.parameters = text.substr(at + 1, std::min(close, text.size()) - at - 1);
  }
  return function;
}

class Reader {
 public:
  explicit Reader(std::string_view source) : text_(blank_comments(source)) {}

  Outline read() {
    for (std::size_t at = 0; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '#') {
        const std::size_t end = end_of_directive(text_, at);
        directive(std::string_view(text_).substr(at, end - at), at);
        if (depth_ == 0) begin_ = end;
        at = end;
      } else if (c == '{' && depth_++ == 0) {
        body_ = at;
        const std::string_view head = std::string_view(text_).substr(begin_, at - begin_);
        if (is_transparent(head)) {
          unnamed_.push_back(trimmed(head) == "namespace");
          depth_ = 0;
          begin_ = at + 1;
        }
      } else if (c == '}') {
        if (depth_ == 0) {  // the end of a namespace
          begin_ = at + 1;
          if (!unnamed_.empty()) unnamed_.pop_back();
        } else if (--depth_ == 0) {
          definition(at + 1);
        }
      } else if (c == ';' && depth_ == 0) {
        outline_.outside += text_.substr(begin_, at + 1 - begin_);
        outline_.parts.push_back({begin_, at + 1, at + 1, {}});
        begin_ = at + 1;
      }
    }
    outline_.whole = depth_ == 0;
    return std::move(outline_);
  }

 private:
  int line_of(std::size_t at) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }

  /// True for a namespace or extern "C", whose contents are at file scope.
  static bool is_transparent(std::string_view head) {
    if (head.find('(') != std::string_view::npos) return false;
    const std::string_view text = trimmed(head);
    return text.starts_with("namespace") || text.starts_with("extern") || text.starts_with("inline namespace");
  }

  void directive(std::string_view line, std::size_t at) {
    std::size_t begin = line.find_first_not_of(" \t", 1);
    if (begin == std::string_view::npos) return;
    const std::size_t end = end_of_identifier(line, begin);
    const std::string_view kind = line.substr(begin, end - begin);
    const std::string_view rest = line.substr(end);
    const std::size_t name = rest.find_first_not_of(" \t");
    if (kind == "ifndef" && name != std::string_view::npos) {
      guard_ = rest.substr(name, end_of_identifier(rest, name) - name);
      return;
    }
    if (kind == "define" && name != std::string_view::npos) {
      const std::size_t stop = end_of_identifier(rest, name);
      Macro macro;
      macro.name = rest.substr(name, stop - name);
      macro.takes_arguments = stop < rest.size() && rest[stop] == '(';
      macro.value = trimmed(rest.substr(stop));
      macro.guarded = macro.name == guard_;
      macro.line = line_of(at);
      outline_.macros.push_back(std::move(macro));
    }
    guard_.clear();
  }

  void definition(std::size_t end) {
    const std::string_view all = std::string_view(text_).substr(begin_, end - begin_);
    Function function = function_of(all.substr(0, body_ - begin_));
    outline_.parts.push_back({begin_, end, body_, function.name});
    if (function.name.empty()) {
      outline_.outside += all;
    } else {
      const std::size_t name = text_.find(function.name, begin_ + function.head.size());
      function.body = text_.substr(body_, end - body_);
      function.line = line_of(std::min(name, body_));
      function.in_unnamed_namespace = std::ranges::count(unnamed_, true) > 0;
      outline_.functions.push_back(std::move(function));
    }
    begin_ = end;
  }

  const std::string text_;
  Outline outline_;
  std::size_t begin_ = 0, body_ = 0;  // beginning of the current item, and of its first brace
  int depth_ = 0;
  std::vector<bool> unnamed_;  // for each open namespace and extern "C" whether it is a namespace without a name
  std::string guard_;          // name of an #ifndef on the previous line
};

}  // namespace

bool in_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::size_t end_of_identifier(std::string_view text, std::size_t at) {
  while (at < text.size() && in_identifier(text[at])) ++at;
  return at;
}

std::string blank_comments(std::string_view source) {
  std::string text(source);
  const auto blank_out = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < std::min(end, text.size()); ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  const auto behind = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = source.find(mark, from);
    return found == std::string_view::npos ? source.size() : found + mark.size();
  };
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source.substr(at, 2) == "//") {
      const std::size_t end = std::min(source.find('\n', at), source.size());
      blank_out(at, end);
      at = end;
    } else if (source.substr(at, 2) == "/*") {
      const std::size_t end = behind("*/", at + 2);
      blank_out(at, end);
      at = end - 1;
    } else if (source[at] == '"' || source[at] == '\'') {
      std::size_t end = at + 1;
      while (end < source.size() && source[end] != source[at] && source[end] != '\n')
        end += source[end] == '\\' ? 2 : 1;
      // the apostrophe of 1'000'000 does not begin a character literal
      if (source[at] == '\'' && at > 0 && std::isdigit(static_cast<unsigned char>(source[at - 1]))) continue;
      blank_out(at + 1, end);
      at = std::min(end, source.size());
    }
  }
  return text;
}

Outline outline_of(std::string_view source) { return Reader(source).read(); }

namespace {

/// Returns whether a condition without blanks and parentheses holds if `macro` is defined; nullopt if that is unknown.
std::optional<bool> holds(std::string_view kind, const std::string& condition, const std::string& macro) {
  if (kind == "ifdef" || kind == "ifndef") return condition == macro ? std::optional(kind == "ifdef") : std::nullopt;
  if (condition == "0") return false;
  if (condition == "defined" + macro) return true;
  const std::size_t at = condition.find("!defined" + macro);
  const std::size_t end = at + 8 + macro.size();
  const bool excludes = at != std::string::npos && condition.find("||") == std::string::npos &&
                        (end == condition.size() || !in_identifier(condition[end]));
  return excludes ? std::optional(false) : std::nullopt;
}

/// Returns what stands within braces.
std::string in_braces(std::string_view text) {
  std::string found;
  int depth = 0;
  for (const char c : text) {
    depth -= c == '}';
    if (depth > 0 || c == '}') found += c;
    depth += c == '{';
  }
  return found;
}

}  // namespace

std::string source_with_macro(std::string_view source, std::string_view macro) {
  struct Branch {
    std::optional<bool> holds;
    bool previous_holds = false, all_known = true;
  };
  const std::string text = blank_comments(source);
  std::string result(source);
  std::vector<Branch> open;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    std::string_view kind;
    if (line.starts_with('#')) {
      const std::string_view rest = trimmed(line.substr(1));
      kind = rest.substr(0, end_of_identifier(rest, 0));
      std::string condition;
      for (const char c : rest.substr(kind.size()))
        if (!is_blank(c) && c != '(' && c != ')') condition += c;
      if (kind == "if" || kind == "ifdef" || kind == "ifndef") {
        open.push_back({holds(kind, condition, std::string(macro))});
      } else if (kind == "endif" && !open.empty()) {
        open.pop_back();
      } else if ((kind == "else" || kind == "elif") && !open.empty()) {
        Branch& branch = open.back();
        branch.previous_holds = branch.previous_holds || branch.holds == true;
        branch.all_known = branch.all_known && branch.holds;
        branch.holds = branch.previous_holds ? std::optional(false)
                       : kind == "elif"      ? holds(kind, condition, std::string(macro))
                       : branch.all_known    ? std::optional(true)
                                             : std::nullopt;
      } else {
        kind = {};
      }
    }
    if (kind.empty() && std::ranges::any_of(open, [](const Branch& b) { return b.holds == false; }))
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(at), result.begin() + static_cast<std::ptrdiff_t>(end),
                ' ');
    at = end + 1;
  }
  return result;
}

std::optional<Macro> redefinition_of(std::string_view source, std::string_view macro) {
  const std::string text = blank_comments(source_with_macro(source, macro));
  const std::vector<std::string> lines = split(text, '\n');
  for (const Macro& one : outline_of(text).macros) {
    if (one.name != macro) continue;
    int depth = 0;
    for (int line = 0; line + 1 < one.line; ++line) {
      const std::string_view directive = trimmed(lines[static_cast<std::size_t>(line)]);
      if (!directive.starts_with('#')) continue;
      const std::string_view kind = trimmed(directive.substr(1));
      depth += kind.starts_with("if");
      depth -= kind.starts_with("endif");
    }
    if (depth == 0) return one;
  }
  return std::nullopt;
}

std::vector<std::string> unfilled_variables(std::string_view source, const std::string& file) {
  if (source.find("__constant__") == std::string_view::npos && source.find("__device__") == std::string_view::npos)
    return {};
  const Outline outline = outline_of(source);
  std::string device_code;
  for (const Function& function : outline.functions)
    if (function.head.find("__global__") != std::string::npos || function.head.find("__device__") != std::string::npos)
      device_code += function.body;
  device_code += in_braces(outline.outside);  // member functions of structures
  const Identifiers used = identifiers_in(device_code);
  const auto is_written = [&](const std::string& name) {
    for (std::size_t at = 0; (at = device_code.find(name, at)) != std::string::npos; at += name.size()) {
      std::size_t end = at + name.size();
      if (in_identifier(at == 0 ? ' ' : device_code[at - 1]) || in_identifier(device_code[end])) continue;
      const std::size_t before = at == 0 ? 0 : device_code.find_last_not_of(' ', at - 1);
      for (int depth = 0; end < device_code.size(); ++end) {  // the indices
        if (device_code[end] == '[') ++depth;
        if (device_code[end] == ']') --depth;
        if (depth == 0 && device_code[end] != ']' && !is_blank(device_code[end])) break;
      }
      // x = 1, x += 1, x++; &x and (x, 1) may be written by a function, and T& r = x by what follows
      const std::string_view rest = std::string_view(device_code).substr(end);
      const std::size_t statement = device_code.find_last_of(";{}", before) + 1;
      const bool bound = device_code[before] == '=' &&
                         device_code.substr(statement, before - statement).find_first_of("&*") != std::string::npos;
      if (bound || std::string_view("&(,").find(device_code[before]) != std::string_view::npos ||
          (rest.starts_with('=') && !rest.starts_with("==")) ||
          (rest.size() > 1 && rest[1] == '=' && rest[0] != '=' &&
           std::string_view("+-*/|&^").find(rest[0]) != std::string_view::npos) ||
          rest.starts_with("++"))
        return true;
    }
    return false;
  };
  std::vector<std::string> messages;
  const std::string text = blank_comments(source);
  for (const std::string& statement : split(outline.outside, ';')) {
    const bool constant = statement.find("__constant__") != std::string::npos;
    if (!constant && statement.find("__device__") == std::string::npos) continue;
    const std::size_t initialiser = statement.find_first_of("={");
    std::vector<std::string> declared = split(std::string_view(statement).substr(0, initialiser));
    if (initialiser != std::string::npos) declared.pop_back();
    for (const std::string& part : declared) {
      if (part.find('(') != std::string::npos) break;  // a function
      const std::string_view declarator = trimmed(std::string_view(part).substr(0, part.find('[')));
      std::size_t begin = declarator.size();
      while (begin > 0 && in_identifier(declarator[begin - 1])) --begin;
      const std::string name(declarator.substr(begin));
      if (name.empty() || !used.contains(name) || (!constant && is_written(name))) continue;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.find(part)) + (declarator.data() - part.data()) +
                                static_cast<std::ptrdiff_t>(begin);
      const auto line = std::count(text.begin(), text.begin() + at, '\n');
      messages.push_back(
          fmt::format("{}:{}: nothing fills the {} variable {}, which is therefore zero in every configuration and in "
                      "the outputs that are compared: pass it to the kernel as an argument",
                      file, line + 1, constant ? "__constant__" : "__device__", name));
    }
  }
  return messages;
}

}  // namespace ergotune::kernel_source
