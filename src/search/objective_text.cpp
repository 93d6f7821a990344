#include "search/objective_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "measure/metrics.hpp"
#include "problem/tables/quantity.hpp"
#include "space/expression/expression_tokens.hpp"

namespace ergotune::search {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// A part of the objective's text with its position, to which messages refer.
struct Piece {
  std::string_view text;
  std::size_t offset = 0;

  Piece part(std::size_t from, std::size_t to) const {
    while (from < to && std::isspace(static_cast<unsigned char>(text[from])) != 0) ++from;
    while (to > from && std::isspace(static_cast<unsigned char>(text[to - 1])) != 0) --to;
    return {text.substr(from, to - from), offset + from};
  }
  Piece trimmed() const { return part(0, text.size()); }
};

class Parser {
 public:
  explicit Parser(const ObjectiveSpec& spec) : spec_(spec) {}

  ObjectiveText parse() {
    replace_best();
    Piece whole = Piece{text_, 0}.trimmed();
    if (whole.text.empty()) fail(0, "the objective is empty; write for example \"time\" or \"max gflops\"");
    if (const auto at = find_word(whole, "subject"); at) {
      const Piece rest = whole.part(*at + 7, whole.text.size());
      if (rest.text.substr(0, 2) != "to" || (rest.text.size() > 2 && is_word(rest.text[2])))
        fail(rest.offset, "expected \"subject to CONDITION\"");
      parse_conditions(rest.part(2, rest.text.size()));
      whole = whole.part(0, *at);
    }
    if (const auto list = call(whole, "pareto")) {
      result_.form = ObjectiveText::Form::pareto;
      parse_terms(*list);
    } else if (const auto levels = call(whole, "lexicographic")) {
      result_.form = ObjectiveText::Form::lexicographic;
      parse_terms(*levels);
    } else {
      result_.terms.push_back(parse_term(whole, spec_.direction));
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    throw UserError(fmt::format("objective \"{}\": {}", excerpt(spec_.text, offset), message), place(offset));
  }
  SourcePlace place(std::size_t offset) const {
    SourcePlace place = spec_.place;
    if (place.column > 0) place.column += static_cast<int>(offset);
    return place;
  }
  Expression expression(Piece piece) const {
    if (piece.text.empty()) fail(piece.offset, "an expression is missing");
    return Expression::parse(piece.text, place(piece.offset));
  }

  // Replaces best(NAME) by best.NAME, padded to the same length so that columns stay correct.
  void replace_best() {
    text_ = spec_.text;
    for (std::size_t at = text_.find("best"); at != std::string::npos; at = text_.find("best", at + 4)) {
      if (at > 0 && is_word(text_[at - 1])) continue;
      std::size_t open = at + 4;
      while (open < text_.size() && text_[open] == ' ') ++open;
      if (open >= text_.size() || text_[open] != '(') continue;
      const std::size_t close = text_.find(')', open);
      if (close == std::string::npos) fail(at, "best( is not closed");
      const Piece name = Piece{text_, 0}.part(open + 1, close);
      if (name.text.empty() || !std::all_of(name.text.begin(), name.text.end(), is_word))
        fail(at, "best() takes the name of a quantity or metric, as in best(time)");
      std::string replaced = kBestPrefix + std::string(name.text);
      replaced.resize(close + 1 - at, ' ');
      text_.replace(at, replaced.size(), replaced);
    }
  }

  // Finds a word outside brackets and strings.
  static std::optional<std::size_t> find_word(Piece piece, std::string_view word, std::size_t from = 0) {
    int depth = 0;
    for (std::size_t i = 0; i < piece.text.size(); ++i) {
      const char c = piece.text[i];
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (i < from || depth != 0 || piece.text.substr(i, word.size()) != word) continue;
      const bool begins = i == 0 || !is_word(piece.text[i - 1]);
      const bool ends = i + word.size() >= piece.text.size() || !is_word(piece.text[i + word.size()]);
      if (begins && ends) return i;
    }
    return std::nullopt;
  }

  // The argument list if `piece` is exactly NAME(...).
  static std::optional<Piece> call(Piece piece, std::string_view name) {
    if (piece.text.substr(0, name.size()) != name) return std::nullopt;
    const Piece rest = piece.part(name.size(), piece.text.size());
    if (rest.text.size() < 2 || rest.text.front() != '(' || rest.text.back() != ')') return std::nullopt;
    return rest.part(1, rest.text.size() - 1);
  }

  static std::vector<Piece> split_list(Piece piece) {
    std::vector<Piece> parts;
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i <= piece.text.size(); ++i) {
      const char c = i < piece.text.size() ? piece.text[i] : ',';
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (c != ',' || (depth != 0 && i < piece.text.size())) continue;
      parts.push_back(piece.part(start, i));
      start = i + 1;
    }
    return parts;
  }

  void parse_terms(Piece list) {
    for (const Piece& item : split_list(list)) result_.terms.push_back(parse_term(item, std::nullopt));
    if (result_.terms.size() < 2) fail(list.offset, "needs at least two objectives, separated by commas");
  }

  ObjectiveTerm parse_term(Piece piece, std::optional<Direction> direction) {
    ObjectiveTerm term;
    for (const auto& [word, turned] : {std::pair{"maximise", Direction::maximise},
                                       {"maximize", Direction::maximise},
                                       {"max", Direction::maximise},
                                       {"minimise", Direction::minimise},
                                       {"minimize", Direction::minimise},
                                       {"min", Direction::minimise}}) {
      const std::string_view w = word;
      // "max(a, b)" is the function; "max a" is a direction
      if (piece.text.substr(0, w.size()) == w && piece.text.size() > w.size() && piece.text[w.size()] == ' ' &&
          piece.part(w.size(), piece.text.size()).text.front() != '(') {
        if (direction && *direction != turned) fail(piece.offset, "its direction is given twice, and differs");
        direction = turned;
        piece = piece.part(w.size(), piece.text.size());
        break;
      }
    }
    term.direction = direction.value_or(Direction::minimise);
    term.has_direction = direction.has_value();
    if (const auto at = find_word(piece, "within")) {
      if (result_.form != ObjectiveText::Form::lexicographic)
        fail(piece.offset + *at, "\"within\" belongs in lexicographic(...)");
      term.tolerance = parse_tolerance(piece.part(*at + 6, piece.text.size()));
      piece = piece.part(0, *at);
    }
    term.expression = expression(piece);
    return term;
  }

  double parse_tolerance(Piece piece) const {
    double scale = 1;
    Piece number = piece;
    if (!number.text.empty() && number.text.back() == '%') {
      scale = 0.01;
      number = number.part(0, number.text.size() - 1);
    }
    double value = 0;
    const char* end = number.text.data() + number.text.size();
    const auto parsed = std::from_chars(number.text.data(), end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0)
      fail(piece.offset, fmt::format("\"within {}\": expected a share such as 5% or 0.05", piece.text));
    return value * scale;
  }

  void parse_conditions(Piece piece) {
    std::size_t start = 0;
    for (;;) {
      const auto at = find_word(piece, "and", start);
      parse_chain(piece.part(start, at.value_or(piece.text.size())));
      if (!at) break;
      start = *at + 3;
    }
  }

  // Parses a <= b < c as a <= b and b < c.
  void parse_chain(Piece piece) {
    struct Side {
      Piece piece;
      std::string operation;  // the operator before it
    };
    std::vector<Side> sides;
    std::string pending;
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t i = 0; i < piece.text.size(); ++i) {
      const char c = piece.text[i];
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (depth != 0 || (c != '<' && c != '>' && c != '=' && c != '!')) continue;
      const bool two = i + 1 < piece.text.size() && piece.text[i + 1] == '=';
      if (c == '!' || c == '=') fail(piece.offset + i, "a condition is an inequality: <, <=, > or >=");
      sides.push_back({piece.part(start, i), pending});
      pending = std::string(piece.text.substr(i, two ? 2 : 1));
      start = i + (two ? 2 : 1);
      i += two ? 1 : 0;
    }
    sides.push_back({piece.part(start, piece.text.size()), pending});
    if (sides.size() < 2) fail(piece.offset, "expected a condition such as time <= 1.1 * best(time)");
    for (std::size_t i = 1; i < sides.size(); ++i) {
      Comparison comparison;
      const bool less = sides[i].operation.front() == '<';
      comparison.left = expression(sides[less ? i - 1 : i].piece);
      comparison.right = expression(sides[less ? i : i - 1].piece);
      comparison.strict = sides[i].operation.size() == 1;
      comparison.text = std::string(piece.text);
      // names on the larger side are bounded from below: their best is their largest value
      for (const auto& name : comparison.right.names())
        if (name.rfind(kBestPrefix, 0) != 0) result_.best_is_largest.push_back(name);
      result_.conditions.push_back(std::move(comparison));
    }
  }

  const ObjectiveSpec& spec_;
  std::string text_;
  ObjectiveText result_;
};

}  // namespace

ObjectiveText parse_objective_text(const ObjectiveSpec& spec) { return Parser(spec).parse(); }

namespace {

std::string plain(const std::string& name) {
  return name.starts_with(kBestPrefix) ? name.substr(std::string_view(kBestPrefix).size()) : name;
}

/// The expression's value with all values of this unit multiplied by `scale`; NaN if it has none.
double value_at(const Expression& expression, const std::map<std::string, std::string>& units, const std::string& unit,
                double scale) {
  std::vector<UncertainInput> inputs;
  double base = 1.0;
  for (const auto& [name, own] : units) {
    base += 0.37;  // different values, so that they do not cancel
    inputs.push_back({name, Value(own == unit ? base * scale : base), 0});
  }
  const auto value = propagate(expression, inputs);
  return value ? value->value : std::numeric_limits<double>::quiet_NaN();
}

/// k if the expression is proportional to the k-th power of all values of this unit; nullopt if it is not.
std::optional<int> exponent(const Expression& expression, const std::map<std::string, std::string>& units,
                            const std::string& unit) {
  constexpr double kRounding = 1e-9;
  const auto growth = [&](double scale) {
    return std::log(value_at(expression, units, unit, scale) / value_at(expression, units, unit, 1)) / std::log(scale);
  };
  // missing values, zeros and sign changes yield NaN, which fails both comparisons
  const double two = growth(2), five = growth(5);
  if (!(std::abs(two - std::round(two)) <= kRounding) || !(std::abs(five - two) <= kRounding)) return std::nullopt;
  return static_cast<int>(std::lround(two));
}

/// "GB/s", "GFLOP/s/W": maximise; "J", "J s", "ms": minimise; nullopt for other units.
std::optional<Direction> direction_of_unit(std::string_view unit) {
  static const std::set<std::string, std::less<>> kCosts{"s",  "ms", "us", "µs", "ns", "min", "h",
                                                         "J",  "kJ", "MJ", "mJ", "uJ", "µJ",  "nJ",
                                                         "pJ", "W",  "kW", "MW", "mW", "Wh",  "kWh"};
  bool below = false;
  std::optional<Direction> direction;
  for (std::size_t at = 0; at < unit.size();) {
    const std::size_t end = std::min(unit.find_first_of("/ *()^", at), unit.size());
    const std::string_view part = unit.substr(at, end - at);
    if (kCosts.contains(part) && !below) return Direction::minimise;
    if (kCosts.contains(part) || part.ends_with("FLOPS") || part.ends_with("flops")) direction = Direction::maximise;
    below = below || (end < unit.size() && unit[end] == '/');
    at = end + 1;
  }
  return direction;
}

std::optional<Direction> direction_of_name(const std::string& name, const std::vector<Metric>& metrics) {
  bool known = false;
  for (const Metric& metric : metrics) {
    if (metric.name != name) continue;
    known = true;
    if (!metric.unit.empty()) return direction_of_unit(metric.unit);
    if (!metric.expression.names().empty()) return direction_of_unit(unit_of_expression(metric.expression, metrics));
  }
  if (const QuantityInfo* info = quantity_info(name)) return info->better;
  // "nvml_energy", "benchmark_time"; other unknown names have no direction here
  return !known || must_be_positive(name) ? std::optional(Direction::minimise) : std::nullopt;
}

}  // namespace

std::optional<Direction> direction_of_expression(const Expression& expression, const std::vector<Metric>& metrics) {
  const std::vector<std::string>& names = expression.names();
  if (names.size() == 1 && expression.text() == names.front()) return direction_of_name(names.front(), metrics);
  // It improves if it does with each of its inputs: "0.5 * time + 100 / rate" falls, "bandwidth / power" grows.
  std::map<std::string, std::string> each;
  for (const std::string& name : names) each[name] = name;
  int falls = 0, grows = 0, costs = 0;
  for (const std::string& name : names) {
    const auto better = direction_of_name(plain(name), metrics);
    costs += better == Direction::minimise;
    if (name.starts_with(kBestPrefix)) continue;
    const double change = value_at(expression, each, name, 1.1) - value_at(expression, each, name, 1);
    if (!better || std::isnan(change)) ++falls, ++grows;  // unknown
    if (better && change != 0) ++((change > 0) == (*better == Direction::minimise) ? falls : grows);
  }
  if (falls == 0 || grows == 0) return grows > 0 ? Direction::maximise : Direction::minimise;
  if (const auto direction = direction_of_unit(unit_of_expression(expression, metrics))) return direction;
  return costs == static_cast<int>(names.size()) ? std::optional(Direction::minimise) : std::nullopt;
}

std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics) {
  std::map<std::string, std::string> units;
  std::set<std::string> different;
  for (const std::string& name : expression.names()) different.insert(units[name] = unit_of(plain(name), metrics));
  std::string above, below;
  for (const std::string& unit : different) {
    if (unit.empty()) continue;
    const auto power = exponent(expression, units, unit);
    if (!power) return {};
    for (int k = 0; k < std::abs(*power); ++k) {
      std::string& part = *power > 0 ? above : below;
      part += (part.empty() ? "" : " ") + unit;
    }
  }
  if (below.empty()) return above;
  return fmt::format("{}/{}", above.empty() ? "1" : above, below.find(' ') == below.npos ? below : "(" + below + ")");
}

}  // namespace ergotune::search
