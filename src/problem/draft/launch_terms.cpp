#include "problem/draft/draft_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "base/text.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

/// True for the 2 of "block.y * 2": the work of each thread.
bool multiplies_block(const std::string& block, const std::string& text, std::size_t begin, std::size_t end) {
  if (block.empty()) return false;
  const std::string_view before = trimmed(std::string_view(text).substr(0, begin)),
                         after = trimmed(std::string_view(text).substr(end));
  const std::string_view factor = trimmed(before.substr(0, before.size() - before.ends_with('*')));
  const std::size_t axis = factor.size() > 2 && factor[factor.size() - 2] == '.' ? 2 : 0;
  return (before.ends_with('*') && factor.substr(0, factor.size() - axis).ends_with(block)) ||
         (after.starts_with('*') && trimmed(after.substr(1)).starts_with(block));
}

/// Returns "block.x" for the first dimension of the launch's block.
std::string block_member(const SourceLaunch& launch, std::size_t dimension) {
  return fmt::format("{}.{}", launch.block_variable, "xyz"[dimension]);
}

/// Returns the value of a divisor or a part of a dividend, which may be a member of the launch's block.
std::optional<long> value_at_launch(const DraftSource& source, const std::string& text) {
  for (std::size_t d = 0; d < source.launch.block.size(); ++d)
    if (text == block_member(source.launch, d)) return source.value(source.launch.block[d]);
  return source.value(text);
}

/// True for the 0 and the 1 of "blockIdx.x * blockDim.y".
bool positions_blocks(const std::string& body, std::size_t grid, std::size_t block) {
  const std::string number = fmt::format(R"((blockIdx\.{}|get_group_id\({}\)))", "xyz"[grid], grid);
  const std::string size = fmt::format(R"((blockDim\.{}|get_local_size\({}\)))", "xyz"[block], block);
  const std::string times = R"(\s*\*\s*)";
  return std::regex_search(body, std::regex(number + times + size + "|" + size + times + number));
}

/// Returns the dimension of the launch's block by which it divides a dimension of its grid.
std::optional<std::size_t> dimension_of(const DraftSource& source, const std::string& divisor, std::size_t dimension) {
  const SourceLaunch& launch = source.launch;
  const auto value = value_at_launch(source, divisor);
  std::optional<std::size_t> of;
  int equal = 0;
  for (std::size_t d = 0; d < launch.block.size(); ++d) {
    if (divisor == block_member(launch, d) || (!whole_number(divisor) && divisor == launch.block[d])) return d;
    if (!value || source.value(launch.block[d]) != value) continue;
    if (d != dimension && kernel_source::identifiers_in(divisor).empty() &&
        !positions_blocks(source.kernel.body, dimension, d))
      continue;  // the same number by chance
    if (d == dimension || !of) of = d;
    ++equal;
  }
  return equal > 1 && *of != dimension ? std::nullopt : of;
}

/// Whether a divisor has a name that the block lacks, as "BLOCK * PER" has: its value may be the block's by chance.
bool has_other_factor(const DraftSource& source, const std::string& divisor, const std::string& block) {
  const auto present = kernel_source::identifiers_in(block + " " + source.set_to(block));
  const auto others = kernel_source::identifiers_in(divisor);
  return parts_of(divisor, "+-*").size() > 1 &&
         std::ranges::any_of(others, [&](const std::string& name) { return !present.contains(name); });
}

/// Returns the constants of the arguments that the launch passes under a name or under one that is set to it.
std::set<std::string> constants_of(const DraftSource& source, const ProblemNames& names, const std::string& word) {
  const SourceLaunch& launch = source.launch;
  const std::vector<std::string> own = source_aliases(source.all, word, launch.at);
  std::set<std::string> exact, aliased;
  for (std::size_t i = 0; !own.empty() && i < std::min(source.parameters.size(), launch.arguments.size()); ++i) {
    const kernel_source::Parameter& parameter = source.parameters[i];
    if (parameter.pointer) continue;
    const auto scalar = names.scalars.find(parameter.name);
    const std::string constant = scalar != names.scalars.end() ? scalar->second : names.size_named(parameter.name);
    const std::vector<std::string> passed = source_aliases(source.all, launch.arguments[i], launch.at);
    if (constant.empty() || std::ranges::find_first_of(passed, own) == passed.end()) continue;
    (passed.front() == word ? exact : aliased).insert(constant);
  }
  return exact.empty() ? aliased : exact;
}

/// Adds what a reader has to check in a line.
void add_mark(std::string* mark, const std::string& what) {
  if (mark && mark->find(what) == std::string::npos) *mark += (mark->empty() ? "" : "; ") + what;
}

/// Marks a size that the launch writes as a number.
void mark_number(std::string* mark, const std::string& size) {
  const bool marked = mark && mark->find(size) != std::string::npos;
  if (!marked && kernel_source::identifiers_in(size).empty())
    add_mark(mark, fmt::format("the launch's {} follows no constant", size));
}

struct Dividend {
  std::string size;
  bool rounded_up = false;
};

/// Returns the n of (n + 15) / 16, (n + block.x - 1) / block.x and n / 16.
Dividend dividend_of(const DraftSource& source, const std::vector<std::string>& quotient) {
  const std::string size = without_parentheses(quotient[0]);
  const auto divisor = value_at_launch(source, quotient[1]);
  std::smatch found;
  static const std::regex kUp(R"((.*)\+\s*([\w.]+)\s*-\s*1)"), kUpNumber(R"((.*)\+\s*(\d+))");
  const bool up = std::regex_match(size, found, kUp) &&
                  (found[2] == quotient[1] || (divisor && value_at_launch(source, found[2]) == divisor));
  if (up || (std::regex_match(size, found, kUpNumber) && divisor && whole_number(found[2]) == *divisor - 1))
    return {std::string(trimmed(found[1].str())), true};
  return {size, false};
}

}  // namespace

bool names_block(const SourceLaunch& launch, const std::string& expression) {
  return !whole_number(launch.block_variable) && !ends_of(expression, launch.block_variable, expression.size()).empty();
}

std::optional<long> launched_blocks(const DraftSource& source, std::size_t dimension) {
  std::string grid = source.launch.grid[dimension];
  for (std::size_t d = 0; !source.launch.block_variable.empty() && d < source.launch.block.size(); ++d)
    for (const std::string& member :
         {block_member(source.launch, d), fmt::format("{}[{}]", source.launch.block_variable, d)})
      for (std::size_t at = 0; (at = grid.find(member, at)) != std::string::npos;)
        grid.replace(at, member.size(), std::to_string(source.value(source.launch.block[d]).value_or(0)));
  return source.value(without_casts(grid));
}

bool launches_whole_blocks(const SourceLaunch& launch, std::size_t dimension) {
  if (dimension >= launch.grid.size()) return false;
  const auto quotient = parts_of(without_parentheses(launch.grid[dimension]), "/");
  return quotient.size() == 2 && quotient.front().find('+') == std::string::npos;
}

std::optional<std::string> in_terms_of_problem(const DraftSource& source, const ProblemNames& names,
                                               const std::string& expression, const std::vector<std::string>& blocks,
                                               std::string* mark, int depth) {
  constexpr int kDeepest = 3;
  const std::string text = without_casts(with_sizes_of_types(names.types, expression));
  const SourceLaunch& launch = source.launch;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = kernel_source::end_of_identifier(text, at);
    if (end == at) {
      if (std::string_view("+-*/() ").find(text[at]) == std::string_view::npos) return std::nullopt;
      result += text[at] == '/' ? "//" : std::string(1, text[at]);
      ++at;
      continue;
    }
    const std::string word = text.substr(at, end - at);
    std::string found;
    if (!blocks.empty() && word == launch.block_variable) {
      const bool member = text.compare(end, 1, ".") == 0, element = text.compare(end, 1, "[") == 0;
      const std::size_t axis = member || element ? std::string_view(member ? "xyz" : "012").find(text[end + 1]) : 0;
      if (axis >= blocks.size() || (element && text.compare(end + 2, 1, "]") != 0)) return std::nullopt;
      end += member ? 2 : element ? 3 : 0;
      found = blocks[axis];
    }
    for (std::size_t d = 0; !whole_number(word) && d < std::min(blocks.size(), launch.block.size()); ++d)
      if (launch.block[d] == word && std::ranges::count(launch.block, word) == 1) found = blocks[d];
    const auto is_own = [&](const std::string& parameter) {  // a number of the launch's block, and the parameter's
      const auto size = std::ranges::find(launch.block, word);
      const auto dimension = static_cast<std::size_t>(size - launch.block.begin());
      return dimension < std::min(blocks.size(), launch.block.size()) && blocks[dimension] == parameter;
    };
    if (const auto launched = names.launched.find(word);
        launched != names.launched.end() && names.source_of(launched->second)) {
      found = launched->second;  // a constant
    } else if (mark && launched != names.launched.end() &&
               (!whole_number(word) || is_own(launched->second) ||
                multiplies_block(launch.block_variable, text, at, end))) {
      found = launched->second;
      add_mark(mark, fmt::format("the launch's {} was taken for {}", word, found));
    }
    if (found.empty())
      if (const auto constants = constants_of(source, names, word); constants.size() == 1) found = *constants.begin();
    if (found.empty() && (names.tunable.contains(word) || names.source_of(word))) found = names.in_expressions(word);
    if (const auto constant = std::ranges::find(names.constants, word, &ProblemNames::Pairs::value_type::first);
        found.empty() && constant != names.constants.end() &&
        source.value(word) == whole_number(constant->second.substr(0, constant->second.find(' '))))
      found = word;
    if (const std::string set = source.set_to(word);
        found.empty() && depth < kDeepest && !kernel_source::identifiers_in(without_casts(set)).empty()) {
      const auto whole = in_terms_of_problem(source, names, set, blocks, nullptr, depth + 1);
      if (whole && !names_in(*whole).empty()) found = fmt::format("({})", *whole);
    }
    if (found.empty())
      if (const auto value = source.value(word)) {
        found = std::to_string(*value);
        for (const std::string& threads : launch.block)  // smaller numbers are too often something else
          if (!blocks.empty() && whole_number(word) && *value >= 16 && source.value(threads) == value)
            add_mark(mark, fmt::format("the launch's {} is the size of its block, too", word));
        if (!whole_number(word) && !names.used.contains(word))
          add_mark(mark, fmt::format("{} stands for the launch's {}", found, word));
      }
    if (found.empty()) return std::nullopt;
    result += found;
    at = end;
  }
  return result;
}

std::optional<std::string> launched_size(const DraftSource& source, const ProblemNames& names, std::size_t dimension,
                                         long of_block) {
  if (dimension >= source.launch.grid.size()) return std::nullopt;
  const std::vector<std::string> quotient = parts_of(without_parentheses(source.launch.grid[dimension]), "/");
  if (quotient.size() == 1 && of_block == 1) return in_terms_of_problem(source, names, quotient[0]);
  if (quotient.size() != 2 || value_at_launch(source, without_parentheses(quotient[1])) != of_block)
    return std::nullopt;
  return in_terms_of_problem(source, names, dividend_of(source, quotient).size);
}

std::optional<std::string> launched_grid(const DraftSource& source, const ProblemNames& names, std::size_t dimension,
                                         bool of_block, const std::vector<std::string>& blocks,
                                         std::vector<std::string>& restrictions, std::string* mark) {
  const std::string& body = source.kernel.body;
  std::vector<std::string> quotient = parts_of(without_parentheses(source.launch.grid[dimension]), "/");
  if (quotient.size() == 1 && quotient.front() == "1" &&
      !contains(body, {fmt::format("blockIdx.{}", "xyz"[dimension]), fmt::format("get_group_id({})", dimension),
                       fmt::format("get_global_id({})", dimension)}))
    return "1";  // of this dimension the body uses positions within a block only
  if (quotient.size() == 1 && !of_block && contains(body, {"blockDim", "get_local_size", "get_global_id"}))
    return std::nullopt;
  if (quotient.size() == 1) {
    const bool any_block = contains(body, {"blockDim", "get_local_size"});
    return in_terms_of_problem(source, names, quotient.front(), any_block ? blocks : std::vector<std::string>(), mark);
  }
  if (of_block || quotient.size() > 2 || parts_of(quotient[0], "+-").size() > 1 ||
      parts_of(quotient[1], "+-*").size() > 1)
    return std::nullopt;
  quotient[1] = without_parentheses(quotient[1]);
  const auto of = dimension_of(source, quotient[1], dimension);
  if (!of || has_other_factor(source, quotient[1], source.launch.block[*of])) return std::nullopt;
  const std::string& block = blocks[*of];
  if (!whole_number(block) && !kernel_source::identifiers_in(body).contains(block) &&
      !contains(body, {fmt::format("blockDim.{}", "xyz"[*of]), fmt::format("get_local_size({})", *of),
                       fmt::format("get_global_id({})", *of)}))
    return std::nullopt;  // the body holds the number
  const Dividend dividend = dividend_of(source, quotient);
  auto whole = in_terms_of_problem(source, names, dividend.size, {}, mark);
  if (!whole) return std::nullopt;
  mark_number(mark, *whole);
  if (dividend.rounded_up) return fmt::format("({0} + {1} - 1) // {1}", *whole, block);
  if (!std::ranges::all_of(*whole, kernel_source::in_identifier)) whole = "(" + *whole + ")";
  restrictions.push_back(fmt::format("{} % {} == 0", *whole, block));  // the launch divides without a rest
  return fmt::format("{} // {}", *whole, block);
}

}  // namespace ergotune::draft
