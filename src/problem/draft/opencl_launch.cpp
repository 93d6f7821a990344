#include "problem/draft/opencl_launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string_view>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::in_identifier;

constexpr std::size_t kLongestStatement = 2000;  // std::regex recurses for each character

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), in_identifier) &&
         !std::isdigit(static_cast<unsigned char>(text.front()));
}

/// Removes what does not change a value: "&size" is "size", "(size_t)(n)" is "n".
std::string plain(const std::string& expression) {
  std::string text(trimmed(expression));
  static const std::regex kAround(
      R"(^&\s*|^\(\s*(?:const\s+)?(?:unsigned|int|cl_\w+|size_t)\s*(?:\[\d*\])?\*?\s*\)|\.data\(\)$|\(\)$)");
  text = text.size() > kLongestStatement ? std::string() : std::regex_replace(text, kAround, "");
  return std::string(trimmed(text));
}

/// Whether the bracket at `open` is closed by the last character.
bool closed_at_end(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += std::string_view("([{").find(text[at]) != std::string_view::npos;
    depth -= std::string_view(")]}").find(text[at]) != std::string_view::npos;
    if (depth == 0) return at + 1 == text.size();
  }
  return false;
}

std::string argument(const std::string& expression) {
  std::string text = plain(expression);
  while (text.starts_with('(') && closed_at_end(text, 0)) text = trimmed(text.substr(1, text.size() - 2));
  return text;
}

/// Returns an argument; of local memory, which has a number of bytes instead of a value, "cl::Local(BYTES)".
std::string argument_of(const std::string& text, const std::string& bytes, const std::string& value, std::size_t end) {
  static const std::set<std::string> kNone{"0", "NULL", "nullptr"};
  if (!kNone.contains(value)) return argument(value);
  const std::string found = is_name(bytes) ? definition_of(text, bytes, end) : std::string();
  return fmt::format("cl::Local({})", found.empty() ? bytes : found);
}

std::vector<std::string> list_in(const std::string& text, std::size_t open) {
  std::vector<std::string> list = list_at(text, open, text[open] == '(' ? ')' : text[open] == '[' ? ']' : '}');
  while (!list.empty() && list.back().empty()) list.pop_back();  // (n,)
  return list;
}

/// Returns the sizes of a range, such as "(n, 16)", "cl::NDRange(n, 16)", or those of a variable at `end`; empty if the
/// implementation chooses them, or they are not found.
std::vector<std::string> range_of(const std::string& text, const std::string& expression, std::size_t end,
                                  int depth = 0) {
  const std::string range = plain(expression);
  static const std::set<std::string> kNone{"", "0", "NULL", "nullptr", "None", "cl::NullRange", "NullRange"};
  if (kNone.contains(range) || depth > 4) return {};
  const std::size_t open = range.find_first_of("({[");
  const bool list = open == 0 || (open != std::string::npos && range.substr(0, open).ends_with("NDRange"));
  if (list && closed_at_end(range, open)) return list_in(range, open);
  if (!is_name(range)) return {range};
  std::vector<std::string> found;
  for (const std::size_t behind : ends_of(text, range, end)) {
    std::size_t next = next_character(text, behind), element = std::string::npos;
    if (next < end && text[next] == '[') {
      const std::size_t close = std::min(text.find(']', next), text.size());
      if (const auto index = source_value("", text.substr(next + 1, close - next - 1));
          index && *index >= 0 && *index < 3)
        element = static_cast<std::size_t>(*index);
      next = next_character(text, close + 1);
    }
    if (next + 1 >= std::min(end, text.size())) continue;
    if (text[next] == '{' || text[next] == '(') {  // cl::NDRange size(n, 16)
      if (auto sizes = list_in(text, next); !sizes.empty()) found = std::move(sizes);
    } else if (const std::string value = initialiser_at(text, next); !value.empty()) {
      if (value.starts_with('{') || element == std::string::npos) {
        found = range_of(text, value, behind, depth + 1);
      } else if (element <= found.size()) {
        found.resize(std::max(found.size(), element + 1));
        found[element] = value;
      }
    }
  }
  return found.empty() && source_value(text, range, end) ? std::vector{range} : found;
}

/// Returns the variables that hold the kernel: k of "k = clCreateKernel(p, "NAME", &e)", "cl::Kernel k(p, "NAME")" and
/// "k = program.NAME".
std::set<std::string> kernel_variables(const std::string& source, const std::string& text, const std::string& kernel) {
  std::set<std::string> found;
  static const std::regex kAssigned(R"((\w+)\s*=[^=]*$)"),
      kDeclared(R"(\bKernel(?:Functor<[^;]*>)?\s+(\w+)\s*[({][^;]*$)");
  for (std::size_t at = 0; (at = source.find(kernel, at)) != std::string::npos; at += kernel.size()) {
    const std::size_t end = at + kernel.size();
    const bool quoted =
        at > 0 && end < text.size() && (text[at - 1] == '"' || text[at - 1] == '\'') && text[end] == text[at - 1];
    const bool member =
        at > 0 && text[at - 1] == '.' && text[next_character(text, std::min(end, text.size() - 1))] == ';';
    if (!quoted && !member) continue;
    const std::size_t begin = text.find_last_of(";{}", at) + 1;
    if (at - begin > kLongestStatement) continue;
    const std::string statement = text.substr(begin, at - begin);
    std::smatch match;
    if (std::regex_search(statement, match, kDeclared) || std::regex_search(statement, match, kAssigned))
      found.insert(match[1].str());
  }
  return found;
}

/// Returns the arguments that the host sets one by one before `end`: clSetKernelArg(k, 0, sizeof n, &n), k.setArg(0,
/// n).
std::vector<std::string> set_arguments(const std::string& text, const std::set<std::string>& variables,
                                       std::size_t end) {
  std::vector<std::string> arguments;
  const auto set = [&](const std::string& number, const std::string& bytes, const std::string& value) {
    const auto index = source_value("", number);
    if (!index || *index < 0 || *index > 100) return;
    arguments.resize(std::max(arguments.size(), static_cast<std::size_t>(*index) + 1));
    arguments[static_cast<std::size_t>(*index)] = argument_of(text, bytes, value, end);
  };
  for (const std::size_t behind : ends_of(text, "clSetKernelArg", end))
    if (const auto list = list_at(text, next_character(text, behind), ')');
        list.size() == 4 && variables.contains(list[0]))
      set(list[1], list[2], list[3]);
  for (const std::string& variable : variables)
    for (const char* method : {"setArg", "set_arg", "set_args"})
      for (const std::size_t behind : ends_of(text, method, end)) {
        const std::string_view before = std::string_view(text).substr(0, behind - std::string_view(method).size());
        if (!before.ends_with(variable + ".")) continue;
        const auto list = list_at(text, next_character(text, behind), ')');
        if (method == std::string_view("set_args"))
          std::transform(list.begin(), list.end(), std::back_inserter(arguments), argument);
        else if (list.size() == 2)
          set(list[0], "", list[1]);
        else if (list.size() == 3)
          set(list[0], list[1], list[2]);
      }
  return arguments;
}

/// Returns the number of work-groups in one dimension as an expression; `names`: those of the size of a group.
std::string groups_of(const std::string& items, const std::string& local, const std::vector<std::string>& names) {
  std::vector<std::string> factors = parts_of(items, "*");
  const auto same = std::find_first_of(factors.begin(), factors.end(), names.begin(), names.end());
  if (same == factors.end()) return fmt::format("({}) / {}", items, local);
  factors.erase(same);
  if (factors.empty()) return "1";
  return fmt::format("{}", fmt::join(factors, " * "));
}

/// Replaces an element of the group's size by its value: "local[1]" by "16".
std::string with_value(std::string text, const std::string& element, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(element, at)) != std::string::npos; at += value.size())
    text.replace(at, element.size(), value);
  return text;
}

}  // namespace

SourceLaunch opencl_launch(const std::string& source, const std::string& kernel) {
  const std::string text = kernel_source::blank_comments(source);
  const std::set<std::string> variables = kernel_variables(source, text, kernel);
  SourceLaunch launch;
  const auto read = [&](const std::string& global, const std::string& local, std::size_t at) {
    launch.at = at;
    launch.block = range_of(text, local, at);
    if (is_name(plain(local)) && !launch.block.empty()) launch.block_variable = plain(local);
    const std::vector<std::string> items = range_of(text, global, at);
    if (!launch.block.empty() && items.size() != launch.block.size()) return;
    for (std::size_t d = 0; d < items.size(); ++d) {
      const std::string size = launch.block.empty() ? "1" : plain(launch.block[d]), variable = plain(local);
      const std::string whole = with_value(plain(items[d]), fmt::format("{}[{}]", variable, d), size);
      launch.grid.push_back(
          groups_of(whole, size, items.size() == 1 ? std::vector{size, variable} : std::vector{size}));
    }
  };
  struct Call {
    const char* name;
    std::size_t kernel, global, least;  // positions in its list, and the length of that
  };
  for (const Call& call : {Call{"clEnqueueNDRangeKernel", 1, 4, 6}, Call{"enqueueNDRangeKernel", 0, 2, 4},
                           Call{"enqueue_nd_range_kernel", 1, 2, 4}})
    for (const std::size_t behind : ends_of(text, call.name, text.size())) {
      const auto list = list_at(text, next_character(text, behind), ')');
      if (list.size() < call.least || !variables.contains(plain(list[call.kernel]))) continue;
      read(list[call.global], list[call.global + 1], behind);
      launch.arguments = set_arguments(text, variables, behind);
      return launch;
    }
  auto called = variables;
  called.insert(kernel);
  for (const std::string& name : called)
    for (const std::size_t behind : ends_of(text, name, text.size())) {
      const std::size_t open = next_character(text, behind), begin = behind - name.size();
      const std::size_t before = begin > 0 ? text.find_last_not_of(" \t\n", begin - 1) : std::string::npos;
      const bool member = begin > 0 && text[begin - 1] == '.';
      const bool declared = before != std::string::npos && in_identifier(text[before]);
      if (open >= text.size() || text[open] != '(' || declared || !(member || variables.contains(name))) continue;
      std::vector<std::string> list = list_at(text, open, ')'), range = list;
      const bool functor = !list.empty() && list[0].find("EnqueueArgs(") != std::string::npos;
      if (functor) range = list_at(list[0], list[0].find('('), ')');
      if (range.size() < 3) continue;
      const std::size_t global = functor ? range.size() - 2 : 1;  // an offset may stand before it
      read(range[global], range[global + 1], behind);
      for (std::size_t i = functor ? 1 : 3; i < list.size(); ++i) launch.arguments.push_back(argument(list[i]));
      return launch;
    }
  return launch;
}

std::string python_as_c(const std::string& source) {
  std::string text;
  int depth = 0;
  for (std::size_t at = 0; at < source.size(); ++at) {
    const char c = source[at];
    if (c == '#') {
      at = std::min(source.find('\n', at), source.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const std::string mark(std::string_view(source).substr(at, 3) == std::string(3, c) ? 3 : 1, c);
      std::size_t end = at + mark.size();
      while (end < source.size() && source.compare(end, mark.size(), mark) != 0 &&
             (mark.size() == 3 || source[end] != '\n'))
        end += source[end] == '\\' ? 2 : 1;
      if (mark.size() == 1) text += source.substr(at, std::min(end + 1, source.size()) - at);
      at = end + mark.size() - 1;
    } else if (c == '/' && source.compare(at, 2, "//") == 0) {
      text += '/';
      ++at;
    } else if (c == '\n' && depth <= 0) {
      text += ";\n";
    } else {
      depth += std::string_view("([{").find(c) != std::string_view::npos;
      depth -= std::string_view(")]}").find(c) != std::string_view::npos;
      text += c;
    }
  }
  static const std::regex kNumber(R"(\b(?:np|numpy)\.u?(?:int|float)\d+\()"), kPower(R"(\b2\s*\*\*\s*(\d+))"),
      kSeparated(R"(\b\d{1,9}(?:_\d{1,9}){1,9}\b)");
  text = std::regex_replace(std::regex_replace(text, kNumber, "("), kPower, "(1 << $1)");
  std::string result;
  std::size_t at = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), kSeparated), end; it != end; ++it) {  // 50_000
    std::string number = it->str();
    std::erase(number, '_');
    result += text.substr(at, static_cast<std::size_t>(it->position()) - at) + number;
    at = static_cast<std::size_t>(it->position() + it->length());
  }
  return result + text.substr(at);
}

}  // namespace ergotune::draft
