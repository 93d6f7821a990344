#include "problem/draft/draft_parts.hpp"
#include "problem/draft/structures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <vector>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/source_text.hpp"

namespace ergotune::draft {
namespace {

/// True for "blockIdx.x * n + threadIdx.x": each block works on a row.
bool strides_by_size(const std::string& expression, const ProblemNames& names) {
  for (const std::string& term : parts_of(expression, "+-"))
    for (const std::string& factor : parts_of(term, "*"))
      if (std::ranges::find(names.sizes, factor, &ProblemNames::Pairs::value_type::first) != names.sizes.end())
        return true;
  return false;
}

/// Whether a term is a size, or a product of sizes and numbers: "4 * plane".
bool is_offset(const std::string& term, const ProblemNames& names) {
  const std::vector<std::string> factors = parts_of(term, "*");
  return std::ranges::all_of(
             factors, [&](const auto& factor) { return whole_number(factor) || !names.size_named(factor).empty(); }) &&
         !std::ranges::all_of(factors, [](const auto& factor) { return whole_number(factor).has_value(); });
}

/// "3 * N" for "N", which is added to "2 * N".
std::string sum_of(const std::string& offset, const std::string& extent) {
  if (offset == extent) return "2 * " + extent;
  const std::size_t star = offset.find(" * ");
  const auto factor = star == std::string::npos ? std::nullopt : whole_number(offset.substr(0, star));
  if (factor && offset.substr(star + 3) == extent) return fmt::format("{} * {}", *factor + 1, extent);
  return offset + " + " + extent;
}

/// The value of an extent where every size is 1000, to compare it with others.
double rough_value(const std::string& extent) {
  static const Value kSize(1000);
  return Expression::parse(extent).evaluate_real([](std::string_view) { return &kSize; });
}

/// The value of a count where every size is `size`, with these values of parameters.
double rough_value(const std::string& count, const std::map<std::string, long, std::less<>>& parameters,
                   long size = 1000) {
  const Value every(size);
  std::map<std::string, Value, std::less<>> values;
  for (const auto& [name, value] : parameters) values.emplace(name, Value(value));
  return Expression::parse(count).evaluate_real([&](std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? &every : &found->second;
  });
}

/// Returns for each parameter in a count the value with which the count is largest.
std::map<std::string, long, std::less<>> largest_values(const ProblemNames& names, const std::string& count) {
  std::map<std::string, long, std::less<>> chosen;
  for (const std::string& name : names_in(count))
    if (names.has_parameter(name)) chosen[name] = 1;
  for (auto& [name, value] : chosen) {
    double largest = -1;
    for (const long other : names.values_of(name)) {
      if (other < 1) continue;
      auto values = chosen;
      values[name] = other;
      if (const double elements = rough_value(count, values); elements > largest) {
        largest = elements;
        value = other;
      }
    }
  }
  return chosen;
}

/// Returns the number of blocks if a count is that number for the launch's block, whatever the sizes; empty for others.
std::string as_number_of_blocks(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
                                const std::string& count) {
  std::map<std::string, long, std::less<>> launched;
  for (std::size_t d = 0; d < std::min(geometry.block.size(), source.launch.block.size()); ++d)
    if (const auto size = source.value(source.launch.block[d]); size > 0) launched[geometry.block[d]] = *size;
  const auto blocks = names_in(geometry.number_of_blocks);
  const bool follows = std::ranges::any_of(blocks, [&](const auto& name) { return launched.contains(name); });
  const bool known = std::ranges::all_of(
      blocks, [&](const auto& name) { return launched.contains(name) || !names.has_parameter(name); });
  constexpr std::size_t kMost = 3;  // sizes, whose product does not overflow
  if (!follows || !known || names_in(count).empty() || names_in(count).size() > kMost ||
      blocks.size() > kMost + launched.size())
    return {};
  for (const long size : {1000L, 3001L})
    if (rough_value(count, launched, size) != rough_value(geometry.number_of_blocks, launched, size)) return {};
  return geometry.number_of_blocks;
}

/// Returns a count in which numbers stand for parameters.
std::string with_values(const std::string& count, const std::map<std::string, long, std::less<>>& values) {
  std::string result;
  for (std::size_t at = 0; at < count.size();) {
    const std::size_t end = std::max(kernel_source::end_of_identifier(count, at), at + 1);
    const std::string word = count.substr(at, end - at);
    const auto found = values.find(word);
    result += found == values.end() ? word : std::to_string(found->second);
    at = end;
  }
  return result;
}

/// Returns the template parameters and macros that an allocation multiplies by; those of a block or of the work of a
/// thread may vary nonetheless.
std::set<std::string> multiplied_in(const ProblemNames& names, const Geometry& geometry, const std::string& allocated) {
  std::set<std::string> found;
  for (const auto& largest : largest_values(names, allocated)) {
    const std::string& name = largest.first;
    const std::vector<long> values = names.values_of(name);
    const bool of_block =
        std::ranges::any_of(geometry.block, [&](const std::string& block) { return names_in(block).contains(name); });
    if (of_block || values.empty() || largest.second != std::ranges::max(values)) continue;
    std::string in_source = name;
    for (const auto& [own, parameter] : names.template_parameters)
      if (parameter == name) in_source = own;
    if (!geometry.factors.contains(in_source)) found.insert(in_source);
  }
  return found;
}

/// Numbers of elements that indices reach.
class ExtentReader {
 public:
  ExtentReader(const KernelUse& use, const ProblemNames& names, const Geometry& geometry)
      : use_(use), names_(names), geometry_(geometry) {}

  /// Returns the number of elements that an index reaches as an expression; empty if the body does not show it.
  std::string extent_of(const std::string& index, int depth = 0);
  /// Whether an extent is that of the launch where the body does not show that.
  bool guessed() const { return guessed_; }

 private:
  std::optional<std::string> reached(int dimension) {
    const auto d = static_cast<std::size_t>(dimension);
    if (d >= geometry_.reach.size()) return std::nullopt;
    guessed_ = guessed_ || geometry_.guessed.contains(dimension);
    return geometry_.reach[d];
  }
  /// Of "min(max(x, 0), width - 1)".
  std::string clamped(const std::string& call, int depth);
  /// Whether a position below a size is multiplied by `factor` and a counter below `factor` is added: "i * R + j".
  bool is_row_length(const std::vector<std::string>& factors, const std::string& factor,
                     const std::vector<std::string>& terms) const;
  /// Of "4 * plane + i".
  std::string with_offset(const std::vector<std::string>& terms, int depth);

  const KernelUse& use_;
  const ProblemNames& names_;
  const Geometry& geometry_;
  bool guessed_ = false;
};

std::string ExtentReader::clamped(const std::string& call, int depth) {
  const std::size_t open = call.find('(');
  std::string function = call.substr(0, open);
  if (function.starts_with("std::")) function.erase(0, 5);
  if (open == std::string::npos || (function != "min" && function != "max" && function != "clamp")) return {};
  const std::vector<std::string> bounds = list_at(call, open, ')');
  for (const std::string& bound : bounds)
    if (const auto parts = parts_of(bound, "-"); parts.size() == 2 && parts[1] == "1" && function != "max")
      if (const std::string size = names_.size_named(parts[0]); !size.empty()) return size;
  for (const std::string& bound : bounds)
    if (!whole_number(bound))
      if (const std::string found = extent_of(bound, depth + 1); !found.empty()) return found;
  return {};
}

std::string ExtentReader::with_offset(const std::vector<std::string>& terms, int depth) {
  std::string offset, rest;
  for (const std::string& term : terms) {
    if (!is_offset(term, names_)) {
      rest += (rest.empty() ? "" : " + ") + term;
      continue;
    }
    std::vector<std::string> factors = parts_of(term, "*");
    for (std::string& factor : factors)
      if (!whole_number(factor)) factor = names_.size_named(factor);
    offset += fmt::format("{}{}", offset.empty() ? "" : " + ", fmt::join(factors, " * "));
  }
  if (offset.empty() || rest.empty()) return {};
  const std::string whole = extent_of(rest, depth + 1);
  return whole.empty() ? std::string() : sum_of(offset, whole);
}

bool ExtentReader::is_row_length(const std::vector<std::string>& factors, const std::string& factor,
                                 const std::vector<std::string>& terms) const {
  const auto below = [&](const std::string& variable, const auto& is_bound) {
    return std::ranges::all_of(variable, kernel_source::in_identifier) &&
           std::ranges::any_of(use_.bounds_of(variable),
                               [&](const std::string& bound) { return is_bound(std::string(trimmed(bound))); });
  };
  const auto is_factor = [&](const std::string& bound) { return bound == factor; };
  const auto is_size = [&](const std::string& bound) { return !names_.size_named(bound).empty(); };
  return std::ranges::any_of(terms, [&](const std::string& term) { return below(term, is_factor); }) &&
         std::ranges::any_of(factors, [&](const std::string& one) { return one != factor && below(one, is_size); });
}

std::string ExtentReader::extent_of(const std::string& index, int depth) {
  if (depth > 6 || index.size() > 300) return {};
  const std::string plain = without_parentheses(index);
  if (plain.empty()) return {};
  if (const auto number = whole_number(plain)) return *number < 0 ? std::string() : std::to_string(*number + 1);
  if (const auto d = KernelUse::block_dimension(plain))
    return geometry_.stated_blocks.empty() ? reached(*d).value_or("") : geometry_.stated_blocks;
  static const std::regex kInBlock(R"(^(?:threadIdx ?\. ?[xyz]|get_local_id ?\( ?[0-2] ?\))$)");
  if (std::regex_match(plain, kInBlock)) {  // if (threadIdx.x < 8) sums[threadIdx.x] = ...
    long largest = 0;
    for (const std::string& bound : use_.bounds_of(plain))
      largest = std::max(largest, whole_number(std::string(trimmed(bound))).value_or(0));
    if (largest > 0) return std::to_string(largest);
  }
  const std::vector<std::string> terms = parts_of(plain, "+-");
  const bool name = std::ranges::all_of(plain, kernel_source::in_identifier);
  if (name || (terms.size() > 1 && plain.find('*') == std::string::npos)) {
    const std::vector<std::string> bounds = use_.bounds_of(plain);
    for (const std::string& text : bounds)
      if (const std::string found = names_.size_in(text); !found.empty()) {
        guessed_ = guessed_ || parts_of(text, "+*").size() > 1 ||               // k < k0 + PANEL, i < width * height
                   std::ranges::any_of(bounds, [&](const std::string& other) {  // of another loop with this name
                     return names_.size_in(other) != found && !kernel_source::identifiers_in(other).empty();
                   });
        return use_.loop_includes(plain, std::string(trimmed(text))).value_or(false) ? found + " + 1" : found;
      }
  }
  if (const auto d = KernelUse::thread_dimension(plain); d && !strides_by_size(plain, names_))
    if (const auto whole = reached(*d)) return *whole;
  if (parts_of(plain, "+-*/").size() == 1)
    if (const std::string found = clamped(plain, depth); !found.empty()) return found;
  const auto extent = [&](const std::string& part) { return extent_of(part, depth + 1); };
  if (name) {
    if (const auto largest = use_.largest_value_of(plain); largest && *largest >= 0)
      return std::to_string(*largest + 1);
    if (const std::string found = names_.bound(use_, plain, 2); !found.empty()) return found;
    if (const auto blocks = geometry_.blocks.find(plain); blocks != geometry_.blocks.end()) {
      for (const int d : geometry_.of_block)
        guessed_ = guessed_ ||
                   (geometry_.guessed.contains(d) && geometry_.reach[static_cast<std::size_t>(d)] == blocks->second);
      return blocks->second;
    }
    if (const std::string stride = names_.size_named(use_.stride_before(plain)); !stride.empty()) return stride;
    const std::string value = use_.value_of(plain);
    const auto first = whole_number(value);  // of "for (int b = 0; b < 256; ++b)": not the largest
    if (value != plain && !first)
      if (const std::string found = extent(value); !found.empty()) return found;
    if (const std::string found = names_.bound(use_, plain); !found.empty()) return found;
    for (const std::string& text : use_.bounds_of(plain))  // b < 256
      if (const auto number = whole_number(std::string(trimmed(text))); number && *number > 0)
        return std::to_string(std::max(*number, first.value_or(0) + 1));
    return {};
  }
  const bool sum = terms.size() > 1 && parts_of(plain, "-").size() == 1;
  if (sum && std::ranges::any_of(terms, [&](const std::string& term) { return is_offset(term, names_); }))
    return with_offset(terms, depth);
  for (const std::string& term : terms) {
    const std::vector<std::string> factors = parts_of(term, "*");
    if (factors.size() < 2) continue;
    std::string product, open;
    for (const std::string& factor : factors) {
      const std::string size = names_.size_named(factor);
      const auto number = whole_number(factor);
      if (!size.empty() || number) {
        product += " * " + (number ? std::to_string(*number) : size);
      } else if (names_.tunable.contains(factor) && is_row_length(factors, factor, terms)) {
        product += " * " + names_.in_expressions(factor);
      } else if (!names_.tunable.contains(factor)) {  // others are tile sizes
        if (!open.empty()) return {};
        open = factor;
      }
    }
    std::string rows = open.empty() ? std::string("1") : extent(open);
    if (rows.empty()) return {};
    if (rows.find('+') != std::string::npos) rows = "(" + rows + ")";
    return rows == "1" && product.size() > 3 ? product.substr(3) : rows + product;
  }
  std::vector<std::string> extents;  // of the terms that have one
  for (const std::string& term : terms)
    if (!whole_number(term) && terms.size() > 1)
      if (const std::string found = extent(term); !found.empty() && !whole_number(found)) extents.push_back(found);
  if (extents.empty()) return {};
  if (terms.size() == 2 && plain.ends_with("- 1") && extents.front().ends_with(" + 1"))  // x[i - 1] for i <= n
    return extents.front().substr(0, extents.front().size() - 4);
  return sum && extents.size() == 2 ? sum_of(extents[0], extents[1]) : extents.front();
}

/// What follows the name and type of an argument, and the comment behind its line.
struct Rest {
  std::string fields, comment;
};

std::string of_width(int width, const std::string& count) {
  if (width == 1) return count;
  const bool name = std::ranges::all_of(count, kernel_source::in_identifier);
  return name ? fmt::format("{} * {}", width, count) : fmt::format("{} * ({})", width, count);
}

Rest scalar(const DraftSource& source, const ProblemNames& names, const std::string& name, Guesses& guesses) {
  std::string constant = names.size_named(name);
  if (const auto scalar = names.scalars.find(name); constant.empty() && scalar != names.scalars.end())
    constant = scalar->second;
  if (!constant.empty()) return {fmt::format("value = \"{}\"", constant), ""};
  if (const std::string launched = source.launched_number(name); !launched.empty())
    return {"value = " + launched, source.changing_value(name).empty()
                                       ? source.as_launched()
                                       : guesses.check(source.changing_value(name), name)};
  return {"value = 1.0", guesses.check("the value that the application passes", name)};
}

/// Returns how many values of a type an expression of the host's for bytes makes, in terms of the problem; empty if it
/// has something else. `mark`: what a reader has to check.
std::string count_in(const DraftSource& source, const ProblemNames& names, const std::vector<std::string>& blocks,
                     const std::string& bytes_of_host, const Element& element, std::string& mark) {
  const auto bytes = in_terms_of_problem(source, names, bytes_of_host, blocks, &mark);
  if (!bytes || bytes->empty()) return {};
  const auto size = static_cast<long>(size_of(*element_type(element.type)));
  if (const auto number = whole_number(*bytes)) return std::to_string(*number / size);
  std::vector<std::string> factors = parts_of(*bytes, "*");
  const auto own = std::ranges::find(factors, std::to_string(size));
  if (factors.size() < 2 || own == factors.end() || parts_of(*bytes, "+-/").size() > 1)
    return size == 1 ? *bytes : fmt::format("({}) // {}", *bytes, size);
  factors.erase(own);
  if (std::ranges::count(factors, "1") < std::ssize(factors)) std::erase(factors, "1");
  if (factors.size() == 1) return without_parentheses(factors.front());
  return fmt::format("{}", fmt::join(factors, " * "));
}

/// Returns what the launch passes for a parameter of the kernel; empty if it is not found.
std::string launched_argument(const DraftSource& source, const std::string& name) {
  const auto number = static_cast<std::size_t>(
      std::ranges::find(source.parameters, name, &kernel_source::Parameter::name) - source.parameters.begin());
  return number < source.launch.arguments.size() ? one_blank(source.launch.arguments[number]) : std::string();
}

/// Returns the number of values of local memory that the host passes; empty if it is not found, or is a number for one
/// value for each work item. `mark`: what a reader has to check.
std::string launched_local_count(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
                                 const std::string& name, const Element& element, std::string& mark) {
  static const std::regex kLocal(R"(^(?:\w+(?:\.|::))?Local(?:Memory)?\((.{1,300})\)$)");
  const std::string argument = launched_argument(source, name);
  std::smatch found;
  if (argument.size() > 400 || !std::regex_match(argument, found, kLocal)) return {};
  const std::string count = count_in(source, names, geometry.block, found[1].str(), element, mark);
  if (count.empty() || !names_in(count).empty()) return count;
  long values = element.width;
  for (const std::string& threads : source.launch.block) values *= source.value(threads).value_or(0);
  if (Expression::parse(count).evaluate_real([](std::string_view) { return nullptr; }) == values) return {};
  mark = fmt::format("the number in {}, which follows no block size", source.launch_file());
  return count;
}

Rest local_memory(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
                  const std::string& name, const Element& element, Guesses& guesses) {
  const KernelUse& use = source.use;
  const std::vector<std::string> indices = use.use_of(name).indices;
  const auto is_work_item = [&](const std::string& index) {
    std::string plain = without_parentheses(index);
    if (const std::string value = use.value_of(plain); !value.empty()) plain = without_parentheses(value);
    return plain == "0" || plain == "get_local_id(0)";
  };
  const bool shown = geometry.dimensions == 1 && !indices.empty() && std::ranges::all_of(indices, is_work_item);
  std::string mark;
  if (!shown)
    if (const auto count = launched_local_count(source, names, geometry, name, element, mark); !count.empty())
      return {fmt::format("local_count = \"{}\"", count),
              mark.empty() ? "  # as the launch in " + source.launch_file() : guesses.check(mark, name)};
  for (const std::string& index : indices)  // for (int b = get_local_id(0); b < BINS; ...) counts[b] = 0;
    for (const std::string& text : use.bounds_of(index)) {
      const std::string bound(trimmed(text));
      const auto number = names.tunable.contains(bound) ? std::nullopt : source.value(bound);
      const auto included = use.loop_includes(index, bound);
      const std::string size = included ? names.size_named(bound) : std::string();
      if (!number && !names.tunable.contains(bound) && size.empty()) continue;
      const bool last = included.value_or(false);
      std::string values = !size.empty() ? size : names.in_expressions(bound);
      if (number && size.empty())
        values = std::to_string(*number + (last ? 1 : 0));
      else if (last)
        values += " + 1";
      return {fmt::format("local_count = \"{}\"", of_width(element.width, values)),
              guesses.check(fmt::format("the bound {} of a loop over {}", bound, name), name)};
    }
  return {fmt::format("local_count = \"{}\"", of_width(element.width, geometry.block_threads)),
          shown ? "" : guesses.check("local memory for one element for each work item of a block", name)};
}

/// Returns the value of an expression for the sizes that the launch passes; nullopt where it has other names.
std::optional<double> value_at_launch(const DraftSource& source, const ProblemNames& names,
                                      const std::string& expression) {
  std::map<std::string, Value, std::less<>> values;
  for (const std::string& name : names_in(expression)) {
    const std::string* const size = names.source_of(name);
    const auto value = size ? whole_number(source.launched_number(*size)) : std::nullopt;
    if (!value) return std::nullopt;
    values.emplace(name, Value(*value));
  }
  return Expression::parse(expression).evaluate_real([&](std::string_view name) { return &values.find(name)->second; });
}

/// Whether the body reads a buffer as conditions only: `if (mask[i])`, `mask[i] ? a : b`, `!mask[i] && x > 0`.
bool is_condition(const std::string& body, const std::string& name) {
  static const std::regex kBefore(R"((?:\b(?:if|while) ?\(|&&|\|\||! ?) ?$)"), kAfter(R"(^ ?(?:\)|&&|\|\||\?))");
  static const std::regex kSelects(R"(^ ?\?)");
  bool any = false;
  for (std::size_t at = body.find(name); at != std::string::npos; at = body.find(name, at + 1)) {
    const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::size_t end = at + name.size();
    if ((at > 0 && in_name(body[at - 1])) || (end < body.size() && in_name(body[end]))) continue;
    end = body.find('[', end);
    if (end == std::string::npos || body.find_first_not_of(' ', at + name.size()) != end) return false;
    for (int depth = 1; depth > 0 && ++end < body.size();) depth += body[end] == '[' ? 1 : body[end] == ']' ? -1 : 0;
    if (end >= body.size()) return false;
    const std::string before = body.substr(at < 10 ? 0 : at - 10, std::min<std::size_t>(at, 10)),
                      after = body.substr(end + 1, 10);
    if (!std::regex_search(after, kSelects) &&
        !(std::regex_search(before, kBefore) && std::regex_search(after, kAfter)))
      return false;
    any = true;
  }
  return any;
}

/// Whether the body gives `*name` to a function of the source that takes a reference and may write to it.
bool is_written_by_reference(const DraftSource& source, const std::string& name) {
  const std::string body = one_blank(source.kernel.body);
  for (const kernel_source::Function& function : source.outline.functions) {
    const auto parameters = kernel_source::parameters_of(function.parameters, true);
    for (const std::size_t behind : ends_of(body, function.name, body.size())) {
      const std::size_t open = body.find('(', behind);
      const auto given = open == std::string::npos ? std::vector<std::string>() : list_at(body, open, ')');
      for (std::size_t i = 0; i < std::min(given.size(), parameters.size()); ++i)
        if (parameters[i].reference && !parameters[i].constant && given[i] == "*" + name) return true;
    }
  }
  return false;
}

/// Returns the elements of an array of arrays, `float x[n][m]`; empty if an extent is not understood. `rows`: what the
/// body reaches, for `float x[][m]`.
std::string declared_count(const DraftSource& source, const ProblemNames& names,
                           const std::vector<std::string>& extents, const std::string& rows) {
  std::vector<std::string> factors;
  for (const std::string& extent : extents) {
    std::string one = names.tunable.contains(extent) ? names.in_expressions(extent) : names.size_named(extent);
    if (one.empty())
      if (const auto value = source.value(extent)) one = std::to_string(*value);
    if (one.empty() && factors.empty()) one = rows;
    if (one.empty()) return {};
    factors.push_back(std::ranges::all_of(one, kernel_source::in_identifier) ? one : "(" + one + ")");
  }
  return fmt::format("{}", fmt::join(factors, " * "));
}

/// Whether the last that the host writes to a buffer before the launch is zeros.
bool begins_with_zeros(const DraftSource& source, const std::string& argument) {
  static const std::regex kSet(R"(\b(?:cuda|hip)Mem(set|cpy)(?:Async)? ?\( ?(\w{1,60}) ?, ?([^,;]{1,100}))");
  static const std::regex kZero(R"(^(?:0|0x0+|0\.0*)[uUlLfF]* ?$)");
  const std::string text = one_blank(kernel_source::blank_comments(source.all.substr(0, source.launch.at)));
  bool zeros = false;
  for (std::sregex_iterator it(text.begin(), text.end(), kSet), end; it != end; ++it)
    if ((*it)[2] == argument) zeros = (*it)[1] == "set" && std::regex_match((*it)[3].str(), kZero);
  return zeros;
}

Rest buffer(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
            const kernel_source::Parameter& parameter, const Element& element, DraftArguments& arguments,
            Guesses& guesses) {
  BufferUse use = source.use.use_of(parameter.name);
  use.written = use.written || is_written_by_reference(source, parameter.name);
  std::string count;
  std::size_t by_block = 0;  // indices that are the position of a block
  bool shown = true;
  ExtentReader reader(source.use, names, geometry);
  for (const std::string& index : use.indices) {
    const std::string extent = reader.extent_of(index);
    shown = shown && !extent.empty();
    if (!extent.empty() && (count.empty() || rough_value(extent) > rough_value(count))) count = extent;
    for (const std::string& bound : source.use.bounds_of(index))  // offsets[row], offsets[row + 1] for row < n
      if (const std::string size = names.size_named(std::string(trimmed(bound)));
          !size.empty() && size == extent && count == extent &&
          (std::ranges::count(use.indices, index + " + 1") > 0 || std::ranges::count(use.indices, index + "+1") > 0))
        count = extent + " + 1";
    const auto block = KernelUse::block_dimension(without_parentheses(index));
    by_block += static_cast<std::size_t>(block && !geometry.of_block.contains(*block));
  }
  if (parameter.extents.size() > 1) {
    count = declared_count(source, names, parameter.extents, count);
    shown = !count.empty();
  }
  std::vector<std::string> marks;
  const auto is_first = [](const std::string& index) { return index == "0"; };
  if (count.empty() || (use.passed_on && std::ranges::all_of(use.indices, is_first))) {
    count = names.size(0);
    if (names.sizes.size() > 1 || geometry.dimensions > 1 || names.is_plane(source.kernel.body))
      count += " * " + names.size(1);
    shown = false;
  }
  count = of_width(element.width, count);
  std::string as_allocated;
  const std::string name = launched_argument(source, parameter.name);
  std::string mark;
  const std::string bytes = allocated_bytes(kernel_source::blank_comments(source.all), name, source.launch.at),
                    allocated = count_in(source, names, {}, bytes, element, mark);
  const auto own = shown ? value_at_launch(source, names, count) : std::nullopt;
  const auto given = allocated.empty() ? std::nullopt : value_at_launch(source, names, allocated);
  const bool agree = own && given && *own == *given;
  const bool larger =
      !(own && given) && shown && mark.empty() && !allocated.empty() && rough_value(allocated) > rough_value(count);
  if (agree || (shown && !reader.guessed() && !larger)) {
    if (own && given && !agree) {
      marks.push_back(fmt::format("as allocated in {}, where the body seems to reach {}", source.launch_file(), count));
      count = allocated;
    }
  } else {
    if (!allocated.empty()) count = allocated, as_allocated = "  # as allocated in " + source.launch_file();
    if (allocated.empty()) mark = "the source does not show the number of elements";
    if (!mark.empty()) marks.push_back(mark);
  }
  if (const std::string blocks = as_number_of_blocks(source, names, geometry, count); !blocks.empty()) count = blocks;
  if (const auto values = largest_values(names, count); !values.empty()) {
    if (count == allocated) arguments.allocated.merge(multiplied_in(names, geometry, count));
    for (const auto& [name_of_parameter, value] : values)
      marks.push_back(fmt::format("{} stands for {}, which a count cannot depend on", value, name_of_parameter));
    count = with_values(count, values);
  }
  arguments.bytes.push_back(fmt::format("{} * ({})", size_of(*element_type(element.type)), count));
  const bool read_only = parameter.constant || (use.read && !use.written) || contains(parameter.type, {"constant"});
  const char* access = read_only ? "" : use.read ? ", access = \"read_write\"" : ", access = \"write\"";
  std::string fill;
  if (!read_only && use.read && begins_with_zeros(source, name))
    fill = ", fill = 0";
  else if (!read_only && use.read)
    marks.emplace_back(
        "read and written: add fill if it must begin with zeros, or where random values are not meaningful");
  arguments.written = arguments.written || (use.written && !read_only);
  if (!read_only && by_block > 0 && by_block == use.indices.size()) {
    if (geometry.blocks_vary) arguments.partial.emplace_back(parameter.name, source.use.reduction_into(parameter.name));
    marks.emplace_back("one element for each block");
  }
  arguments.by_block = arguments.by_block || (read_only && by_block > 0);
  const bool structure = resolved(names.types, parameter.type).starts_with("uint8[");
  const bool integers = fill.empty() && use.read && !structure && !element.type.starts_with("float");
  if (read_only && integers && element.width == 1 && is_condition(one_blank(source.kernel.body), parameter.name)) {
    fill = ", fill = { random = [0, 1] }";
    marks.emplace_back("zeros and ones in equal shares, as it is read as a condition only");
  } else if (integers) {
    const KernelUse::ElementUse elements = source.use.elements_of(parameter.name);
    std::string deeds = elements.indexed.empty() ? "" : fmt::format("index {}", fmt::join(elements.indexed, ", "));
    if (elements.bounds_loop) deeds += deeds.empty() ? "bound a loop" : " and bound a loop";
    if (!deeds.empty())
      marks.push_back(fmt::format(
          "its elements {}, where random ones (0 to 127) may not fit: give the application's, fill = {{ "
          "file = \"{}.bin\" }}, or numbers that fit, {{ random = [LEAST, GREATEST] }} or {{ range = [0, 1] }}",
          deeds, parameter.name));
  }
  return {fmt::format("count = \"{}\"{}{}", count, access, fill),
          marks.empty() ? as_allocated : guesses.check(fmt::format("{}", fmt::join(marks, "; ")), parameter.name)};
}

/// The members of a structure in a buffer as one vector, if all are real numbers of one type, so that random contents
/// are meaningful; nullopt for another one.
std::optional<Element> of_one_type(const DraftSource& source, const kernel_source::Parameter& parameter,
                                   const std::optional<Element>& whole) {
  if (!parameter.pointer || !whole) return std::nullopt;
  const std::vector<Field> members =
      members_in_source(source.all, source.language.key == "opencl", unqualified(parameter.type), {});
  if (members.empty()) return std::nullopt;
  const ElementType type = members.front().type;
  const auto size = static_cast<int>(size_of(type)), width = static_cast<int>(members.size());
  const bool same = std::ranges::all_of(members, [&](const Field& field) { return field.type == type; });
  if (!same || !to_string(type).starts_with("float") || width * size != whole->width) return std::nullopt;
  return Element{to_string(type), width};
}

std::string structure(const DraftSource& source, const ProblemNames& names, const Structure& whole, Guesses& guesses) {
  std::string lines = fmt::format("  {{ name = \"{}\", type = \"{}\", fields = [\n", whole.name, whole.type);
  for (std::size_t i = 0; i < whole.members.size(); ++i) {
    const kernel_source::Parameter& member = source.parameters[whole.first + i];
    const auto [fields, comment] = scalar(source, names, member.name, guesses);
    lines += fmt::format("    {{ name = \"{}\", type = \"{}\", {} }},{}\n", whole.members[i],
                         element_of(member.type).value_or(Element{"float32"}).type, fields, comment);
  }
  return lines + "  ] },\n";
}

}  // namespace

DraftArguments derive_arguments(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
                                Guesses& guesses) {
  DraftArguments arguments;
  for (std::size_t number = 0; number < source.parameters.size(); ++number) {
    const auto whole = std::ranges::find(source.structures, number, &Structure::first);
    if (whole != source.structures.end()) {
      arguments.lines += structure(source, names, *whole, guesses);
      number += whole->members.size() - 1;
      continue;
    }
    const kernel_source::Parameter& parameter = source.parameters[number];
    const std::string type = resolved(names.types, parameter.type);
    auto element = element_of(type);
    if (!element && source.language.for_host && contains(type, {"std::", "<"}))
      throw UserError(fmt::format(
          "{}: the parameter \"{}\" of {} is a {}; a problem passes numbers and pointers: write a function that takes "
          "these, such as {}.data() and its length, and calls this one",
          source.file.string(), parameter.name, source.kernel.name, parameter.type, parameter.name));
    bool structure = type.starts_with("uint8[");  // add_structures
    if (const auto members = of_one_type(source, parameter, element); structure && members) {
      element = members;
      structure = false;
    }
    if (!element || (structure && !parameter.pointer)) {
      if (contains(type, {"image", "sampler", "texture", "cudaTextureObject_t", "surface"}))
        throw UserError(fmt::format(
            "{}: the parameter \"{}\" is a {}; images and textures cannot be arguments of a problem: let the "
            "kernel read a buffer instead (a pointer), or call a variant that does",
            source.file.string(), parameter.name, type));
      const auto unread = source.unread_structures.find(parameter.name);
      guesses.ask(fmt::format(
          "{}: the type \"{}\" is not known{} and float32 was assumed; {}", parameter.name, unqualified(parameter.type),
          unread == source.unread_structures.end() ? std::string() : fmt::format(" ({})", unread->second),
          parameter.pointer
              ? "a buffer of structures has type = \"uint8\", a count of bytes, and fill = { "
                "file = ... }"
              : "a structure is { name = \"" + parameter.name + "\", type = \"" + parameter.type +
                    "\", fields = [{ name = \"rows\", type = \"int32\", value = 1 }] } with its members"));
    } else if (structure) {
      guesses.ask(
          fmt::format("{}: {} is a structure of {} bytes: give the buffer real ones with fill = {{ file = "
                      "\"...\" }}, as random bytes are hardly ever meaningful",
                      parameter.name, unqualified(parameter.type), element->width));
    }
    const Element known =
        structure && !parameter.pointer ? Element{"float32", 1} : element.value_or(Element{"float32", 1});
    const auto [fields, comment] = !parameter.pointer ? scalar(source, names, parameter.name, guesses)
                                   : contains(parameter.type, {"__local", "local "})
                                       ? local_memory(source, names, geometry, parameter.name, known, guesses)
                                       : buffer(source, names, geometry, parameter, known, arguments, guesses);
    arguments.lines +=
        fmt::format("  {{ name = \"{}\", type = \"{}\", {} }},{}\n", parameter.name, known.type, fields, comment);
  }
  if (arguments.by_block) arguments.partial.clear();
  if (!arguments.written && source.returns_void())
    guesses.ask(
        "arguments: no buffer was found to be written, and only those that are written are verified: add access = "
        "\"write\" to the outputs, or \"read_write\" where the kernel reads them, too");
  return arguments;
}

}  // namespace ergotune::draft
