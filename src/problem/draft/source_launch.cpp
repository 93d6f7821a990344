#include "problem/draft/source_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <string_view>

#include "base/kernel_source/outline.hpp"
#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::in_identifier;

/// Of "w, h = 1024, 512" (Python) what the name that ends at `behind` is set to; empty for other statements.
std::string unpacked(const std::string& text, const std::string& name, std::size_t behind) {
  const std::size_t begin = text.find_last_of(";{}", behind - 1) + 1;  // npos + 1 is 0
  const std::size_t end = std::min(text.find(';', behind), text.size()), equals = text.find('=', behind);
  if (equals >= end) return {};
  const std::vector<std::string> names = parts_of(text.substr(begin, equals - begin), ","),
                                 values = parts_of(text.substr(equals + 1, end - equals - 1), ",");
  const auto is_name = [](const std::string& one) { return std::ranges::all_of(one, in_identifier); };
  if (names.size() < 2 || names.size() != values.size() || !std::ranges::all_of(names, is_name)) return {};
  return values[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin()) % values.size()];
}

std::optional<long> value_in(const std::string& text, std::string_view expression, std::size_t end, int depth) {
  constexpr std::size_t kLongest = 300;
  if (expression.size() > kLongest || depth > 4) return std::nullopt;
  std::string plain(trimmed(without_casts(std::string(expression))));
  for (const char* call : {"int(", "long(", "size_t(", "std::size_t("})  // int(65536)
    if (const std::size_t open = std::string_view(call).size() - 1; plain.starts_with(call) && plain.ends_with(')'))
      if (const auto list = list_at(plain, open, ')'); list.size() == 1 && list[0].size() + open + 2 == plain.size())
        plain = list[0];
  if (plain.empty()) return std::nullopt;
  char* rest = nullptr;
  static const std::regex kScientific(R"(\d{1,9}(\.\d{0,9})?[eE]\+?\d\d?)");  // 1e6
  if (std::regex_match(plain, kScientific))
    if (const double real = std::strtod(plain.c_str(), nullptr); real < 1e15 && real == std::floor(real))
      return static_cast<long>(real);
  const long number = std::strtol(plain.c_str(), &rest, 0);
  while (rest != plain.c_str() && *rest != '\0' && std::string_view("uUlL").find(*rest) != std::string_view::npos)
    ++rest;
  if (*rest == '\0') return number;
  if (const std::size_t question = plain.find('?'), colon = plain.rfind(':');  // argc > 1 ? atoi(argv[1]) : 1 << 20
      question != std::string::npos && colon != std::string::npos && colon > question) {
    if (const auto other = value_in(text, plain.substr(colon + 1), end, depth + 1)) return other;
    return value_in(text, plain.substr(question + 1, colon - question - 1), end, depth + 1);
  }
  if (plain.front() == '(' && plain.back() == ')')
    if (const auto inner = value_in(text, plain.substr(1, plain.size() - 2), end, depth)) return inner;
  if (const std::size_t shift = plain.find("<<"); shift != std::string::npos) {
    const auto left = value_in(text, plain.substr(0, shift), end, depth);
    const auto right = value_in(text, plain.substr(shift + 2), end, depth);
    return left && right && *right >= 0 && *right < 40 ? std::optional(*left << *right) : std::nullopt;
  }
  for (const char* operators : {"+-", "*/"}) {  // the last one of the lowest rank
    const std::string last = parts_of(plain, operators).back();
    if (last.size() + 1 >= plain.size()) continue;
    const std::size_t at = plain.find_last_of(operators, plain.size() - last.size() - 1);
    const auto left = value_in(text, plain.substr(0, at), end, depth), right = value_in(text, last, end, depth);
    long result = 0;
    if (!left || !right || (plain[at] == '/' && *right < 1)) return std::nullopt;
    const bool overflows = plain[at] == '+'   ? __builtin_add_overflow(*left, *right, &result)
                           : plain[at] == '-' ? __builtin_sub_overflow(*left, *right, &result)
                           : plain[at] == '*' ? __builtin_mul_overflow(*left, *right, &result)
                                              : (result = *left / *right, false);
    return overflows ? std::nullopt : std::optional(result);
  }
  if (!std::all_of(plain.begin(), plain.end(), in_identifier)) return std::nullopt;
  const std::vector<std::size_t> places = ends_of(text, plain, end);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {  // the last value before the launch
    const std::size_t behind = *place, begin = behind - plain.size(), line = text.rfind('\n', begin) + 1;
    std::string value = unpacked(text, plain, behind);
    if (value.empty() && trimmed(std::string_view(text).substr(line, begin - line)) == "#define")
      return value_in(text, text.substr(behind, text.find('\n', behind) - behind), end, depth + 1);
    if (value.empty()) value = initialiser_at(text, behind);
    if (!ends_of(value, plain, value.size()).empty()) continue;  // i = i + 1
    if (const auto found = value_in(text, value, begin, depth + 1)) return found;
  }
  return std::nullopt;
}

/// Returns the dimensions of a block: of "256", "dim3(16, 16)", or a variable.
std::vector<std::string> block_of(const std::string& text, const std::string& expression, std::size_t end) {
  if (expression.starts_with("dim3")) {
    const std::size_t open = expression.find_first_of("({");
    if (open == std::string::npos) return {};
    return list_at(expression, open, expression[open] == '(' ? ')' : '}');
  }
  if (value_in(text, expression, end, 0)) return {expression};
  std::vector<std::string> found;
  for (const std::size_t behind : ends_of(text, expression, end)) {
    const std::size_t next = next_character(text, behind);
    if (next >= end || next >= text.size()) break;
    std::vector<std::string> list;
    if (text[next] == '(' || text[next] == '{')
      list = list_at(text, next, text[next] == '(' ? ')' : '}');
    else if (text[next] == '=')
      if (const std::string value(trimmed(text.substr(next + 1, text.find(';', next) - next - 1)));
          value.starts_with("dim3"))
        list = block_of(text, value, behind);
    if (!list.empty()) found = std::move(list);
  }
  return found;
}

/// Returns what a name was last set to before `end`; other expressions as they are.
std::string last_value(const std::string& text, const std::string& expression, std::size_t end) {
  const bool name = std::all_of(expression.begin(), expression.end(), in_identifier);
  const std::string found = name ? definition_of(text, expression, end) : std::string();
  return found.empty() ? expression : found;
}

/// Returns what a call or a cast has between its parentheses; none where `text` is something else.
std::vector<std::string> arguments_of(const std::string& text, const std::regex& name) {
  std::smatch found;
  if (text.size() > 400 || !text.ends_with(')') ||
      !std::regex_search(text, found, name, std::regex_constants::match_continuous))
    return {};
  const auto open = static_cast<std::size_t>(found.length());
  int depth = 0;
  for (std::size_t at = open; at + 1 < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) return {};
  }
  return list_at(text, open, ')');
}

std::string quotient_rounded_up(const std::string& size, const std::string& divisor) {
  const bool name = std::ranges::all_of(divisor, in_identifier);
  return name ? fmt::format("({0} + {1} - 1) / {1}", size, divisor)
              : fmt::format("({0} + {1} - 1) / ({1})", size, divisor);
}

/// Returns a number of blocks as "(n + threads * ITEMS - 1) / (threads * ITEMS)" where the host writes it as a cast of
/// that, with std::ceil, div_up(n, ...), (n - 1) / ... + 1, at most 65535, or with a variable for the divisor.
std::string plain_quotient(const std::string& text, const std::string& expression, std::size_t end, int depth = 0) {
  constexpr int kDeepest = 4;
  constexpr long kFewestOfALimit = 32768;  // of the blocks that an older device can launch
  static const std::regex kCast(
      R"((?:static_cast ?< ?[\w: ]{1,40}>|(?:std::)?(?:unsigned(?: int)?|int|long|size_t|uint|u?int\d\d?_t|float|double)) ?(?=\())"),
      kCeil(R"((?:std::)?ceilf? ?(?=\())"), kMin(R"((?:std::)?min ?(?:< ?[\w: ]{1,40}>)? ?(?=\())"),
      kUp(R"((?:\w{1,40}::)?\w{0,20}(?:div_?(?:round_?)?up|ceil_?div|div_?ceil|cdiv|divide_?up)\w{0,20} ?(?=\())",
          std::regex::icase),
      kCastName(
          R"(\b(?:(?:std::)?(?:unsigned|int|long|size_t|uint|u?int\d\d?_t|float|double)) ?\( ?(\w{1,80}) ?\)|\( ?(?:float|double) ?\))");
  std::string plain = without_parentheses(std::string(trimmed(without_casts(one_blank(expression)))));
  if (depth > kDeepest || plain.size() > 400) return expression;
  plain = std::regex_replace(plain, kCastName, "$1");
  const auto again = [&](const std::string& inner) { return plain_quotient(text, inner, end, depth + 1); };
  if (const auto cast = arguments_of(plain, kCast); cast.size() == 1) return again(cast[0]);
  if (const auto call = arguments_of(plain, kMin);
      call.size() == 2 && whole_number(call[1]).value_or(0) >= kFewestOfALimit)
    return again(call[0]);
  if (const auto call = arguments_of(plain, kUp); call.size() == 2) return again(quotient_rounded_up(call[0], call[1]));
  if (const auto call = arguments_of(plain, kCeil);  // of whole numbers it is their quotient without the rest
      call.size() == 1 && contains(expression, {"double", "float"}))
    if (const auto parts = parts_of(without_parentheses(call[0]), "/"); parts.size() == 2)
      return again(quotient_rounded_up(again(parts[0]), without_parentheses(parts[1])));
  const std::vector<std::string> sum = parts_of(plain, "+");
  if (sum.size() == 2 && sum[1] == "1")
    if (const auto parts = parts_of(sum[0], "/"); parts.size() == 2)
      if (const auto size = parts_of(without_parentheses(parts[0]), "-"); size.size() == 2 && size[1] == "1")
        return again(quotient_rounded_up(size[0], without_parentheses(parts[1])));
  const std::vector<std::string> parts = parts_of(plain, "/");
  if (parts.size() == 2 && std::ranges::all_of(parts[1], in_identifier))
    if (const std::string set = definition_of(text, parts[1], end); parts_of(set, "*").size() == 2)
      return again(std::regex_replace(plain, std::regex("\\b" + parts[1] + "\\b"), "(" + set + ")"));
  return plain;
}

/// Returns the dimensions of a grid, of which a variable's last value before `end` is taken.
std::vector<std::string> grid_of(const std::string& text, const std::string& expression, std::size_t end) {
  if (const std::string set = plain_quotient(text, last_value(text, expression, end), end);
      parts_of(set, "/").size() == 2)
    return {set};
  if (!std::all_of(expression.begin(), expression.end(), in_identifier) || value_in(text, expression, end, 0))
    return expression.starts_with("dim3") ? block_of(text, expression, end) : std::vector{expression};
  if (auto list = block_of(text, expression, end); !list.empty()) return list;
  return {last_value(text, expression, end)};
}

/// Of "std::vector<float> in(n), out(n)" and "float* in = (float*)malloc(4 * n)".
std::string allocated_on_host(const std::string& text, const std::string& buffer, std::size_t end) {
  std::string bytes;
  for (const std::size_t behind : ends_of(text, buffer, end)) {
    const std::size_t statement = text.find_last_of(";{}", behind) + 1;
    const std::string_view before =
        trimmed(std::string_view(text).substr(statement, behind - buffer.size() - statement));
    const std::size_t type = before.find("vector<"), close = before.find('>'), open = next_character(text, behind);
    if (type != std::string_view::npos && close != std::string_view::npos && text.compare(open, 1, "(") == 0 &&
        (before.ends_with('>') || before.ends_with(','))) {
      if (const auto list = list_at(text, open, ')'); !list.empty())
        bytes = fmt::format("sizeof({}) * ({})", before.substr(type + 7, close - type - 7), list[0]);
    } else if (const std::string value = initialiser_at(text, behind); value.find("malloc(") != std::string::npos) {
      if (const auto list = list_at(value, value.find("malloc(") + 6, ')'); !list.empty()) bytes = list[0];
    }
  }
  return bytes;
}

/// Of "np.zeros(n, np.float32)"; empty for other values.
std::string bytes_of_array(const std::string& value) {
  static const std::regex kArray(
      R"(^(?:np|numpy)\.(?:zeros|ones|empty) ?\( ?([\w *+]{1,80}), ?(?:dtype ?= ?)?(?:np|numpy)\.u?(?:int|float)(8|16|32|64) ?\)$)");
  std::smatch found;
  if (value.size() > 200 || !std::regex_match(value, found, kArray)) return {};
  return fmt::format("{} * ({})", std::stoi(found[2].str()) / 8, found[1].str());
}

/// Reads the template arguments "<float, 32>" that begin at `at`. Returns the position behind them; npos if there are
/// none.
std::size_t read_template_arguments(const std::string& text, std::size_t at, std::vector<std::string>& arguments) {
  int open = 0;
  for (std::size_t end = at; end < text.size() && std::string_view(";{}").find(text[end]) == std::string_view::npos;
       ++end) {
    open += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
    if (open > 0) continue;
    if (end > at) arguments = parts_of(text.substr(at + 1, end - at - 1), ",");
    return end > at ? end + 1 : std::string::npos;
  }
  return std::string::npos;
}

}  // namespace

SourceLaunch source_launch(const std::string& source, const std::string& kernel) {
  const std::string text = kernel_source::blank_comments(source);
  for (const std::size_t behind : ends_of(text, kernel, text.size())) {
    SourceLaunch launch;
    launch.at = behind;
    std::size_t next = next_character(text, behind);
    if (text.compare(next, 1, "<") == 0 && text.compare(next, 3, "<<<") != 0) {
      const std::size_t close = read_template_arguments(text, next, launch.template_arguments);
      if (close == std::string::npos) continue;
      next = next_character(text, close);
    }
    if (text.compare(next, 3, "<<<") == 0) {
      const std::size_t close = text.find(">>>", next);
      if (close == std::string::npos) continue;
      const std::vector<std::string> shape = parts_of(text.substr(next + 3, close - next - 3), ",");
      if (shape.size() > 1) {
        launch.grid = grid_of(text, shape[0], behind);
        for (std::string& blocks : launch.grid) blocks = plain_quotient(text, blocks, behind);
        launch.block = block_of(text, shape[1], behind);
        launch.block_variable = shape[1];
        if (shape.size() > 2) launch.shared_memory_bytes = last_value(text, shape[2], behind);
      }
      next = next_character(text, close + 3);
    } else if (launch.template_arguments.empty()) {
      continue;
    }
    if (text.compare(next, 1, "(") != 0) continue;
    launch.arguments = list_at(text, next, ')');
    return launch;
  }
  return {};
}

SourceLaunch host_call(const std::string& source, const std::string& function, std::size_t arguments) {
  const std::string text = kernel_source::blank_comments(source);
  for (const std::size_t behind : ends_of(text, function, text.size())) {
    SourceLaunch launch;
    launch.at = behind;
    std::size_t open = next_character(text, behind);
    if (text.compare(open, 1, "<") == 0) {
      const std::size_t close = read_template_arguments(text, open, launch.template_arguments);
      if (close == std::string::npos) continue;
      open = next_character(text, close);
    }
    if (text.compare(open, 1, "(") != 0) continue;
    const std::string before(trimmed(std::string_view(text).substr(0, behind - function.size())));
    const std::size_t line = before.rfind('\n') + 1;
    const bool is_directive = trimmed(std::string_view(before).substr(line)).starts_with('#');  // #pragma omp parallel
    const bool follows_type =
        !before.empty() && (in_identifier(before.back()) || contains("*&>", {{&before.back(), 1}}));
    if (follows_type && !is_directive && !before.ends_with("return") && !before.ends_with("else")) continue;
    launch.arguments = list_at(text, open, ')');
    if (launch.arguments.size() == arguments) return launch;
  }
  return {};
}

std::optional<long> source_value(const std::string& source, const std::string& expression, std::size_t end) {
  return value_in(kernel_source::blank_comments(source), expression, end, 0);
}

std::string definition_of(const std::string& text, const std::string& name, std::size_t end) {
  std::string found;
  for (const std::size_t behind : ends_of(text, name, end)) {
    const std::size_t line = text.rfind('\n', behind) + 1;
    if (const std::string own = unpacked(text, name, behind); !own.empty())
      found = own;
    else if (trimmed(std::string_view(text).substr(line, behind - name.size() - line)) == "#define")
      found = text.substr(behind, text.find('\n', behind) - behind);
    else if (const std::string value = initialiser_at(text, behind); !value.empty())
      found = value;
  }
  return without_parentheses(found);
}

std::optional<long> named_number(const std::string& source, const std::string& text) {
  if (const auto number = whole_number(text)) return number;
  if (text.empty() || !std::ranges::all_of(text, kernel_source::in_identifier)) return std::nullopt;
  const std::string plain = kernel_source::blank_comments(source);
  return whole_number(std::string(trimmed(definition_of(plain, text, plain.size()))));
}

std::string allocated_bytes(const std::string& text, const std::string& buffer, std::size_t end) {
  std::string bytes;
  for (const std::size_t behind : ends_of(text, buffer, end)) {
    const std::size_t next = next_character(text, behind), begin = behind - buffer.size();
    const bool declares = text.compare(next, 1, "(") == 0 || text.compare(next, 1, "{") == 0;
    const std::string value = declares ? text.substr(next, text.find(';', next) - next) : initialiser_at(text, behind);
    if (declares ? !trimmed(std::string_view(text).substr(0, begin)).ends_with("Buffer")
                 : value.find("Buffer(") == std::string::npos)
      continue;
    const std::size_t open = value.find_first_of("({");
    const std::vector<std::string> list = list_at(value, open, value[open] == '(' ? ')' : '}');  // context, flags, size
    if (list.size() < 3) continue;
    if (list[2].starts_with("size=")) bytes = list[2].substr(5);
    if (list[2].starts_with("hostbuf=")) bytes = bytes_of_array(definition_of(text, list[2].substr(8), end));
    if (list[2].find('=') == std::string::npos) bytes = list[2];
  }
  for (const char* call : {"cudaMalloc", "cudaMallocManaged", "hipMalloc"})
    for (const std::size_t behind : ends_of(text, call, end)) {
      const std::size_t open = next_character(text, behind);
      const auto list = text.compare(open, 1, "(") == 0 ? list_at(text, open, ')') : std::vector<std::string>();
      if (list.size() > 1 && list[0].ends_with("&" + buffer)) bytes = list[1];
    }
  if (bytes.empty()) bytes = allocated_on_host(text, buffer.substr(0, buffer.find(".data()")), end);
  return last_value(text, bytes, end);
}

std::vector<std::string> source_aliases(const std::string& source, const std::string& name, std::size_t end) {
  constexpr std::size_t kMost = 5;
  const std::string text = kernel_source::blank_comments(source);
  std::vector<std::string> names;
  for (std::string next = name; names.size() < kMost && !next.empty() && !whole_number(next) &&
                                std::all_of(next.begin(), next.end(), in_identifier);
       next = definition_of(text, next, end))
    names.push_back(next);
  return names;
}

}  // namespace ergotune::draft
