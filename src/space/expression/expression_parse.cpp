// Recursive descent parser for the part of Python's expression grammar that ergotune/space.hpp documents.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "space/expression/expression_tokens.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune {
namespace {

struct FunctionEntry {
  std::string_view name;
  Function function;
  int least, most;  // number of arguments
};
constexpr std::array<FunctionEntry, 15> kFunctions{{
    {"min", Function::min, 1, 1000},
    {"max", Function::max, 1, 1000},
    {"abs", Function::abs, 1, 1},
    {"ceil", Function::ceil, 1, 1},
    {"floor", Function::floor, 1, 1},
    {"round", Function::round, 1, 2},
    {"sqrt", Function::sqrt, 1, 1},
    {"log", Function::log, 1, 2},
    {"log2", Function::log2, 1, 1},
    {"exp", Function::exp, 1, 1},
    {"int", Function::to_int, 1, 1},
    {"float", Function::to_float, 1, 1},
    {"bool", Function::to_bool, 1, 1},
    {"len", Function::len, 1, 1},
    {"occupancy", Function::occupancy, 3, 3},
}};

class Parser {
 public:
  Parser(std::string_view text, const SourcePlace& place) : tokens_(text, place) {}

  ExpressionPointer parse() {
    if (token().kind == TokenKind::end) fail(0, "an expression is missing here");
    auto result = parse_conditional();
    if (token().kind != TokenKind::end) fail(token().offset, unexpected());
    if (result->kind == ExpressionNode::Kind::list)
      fail(result->offset, "a list is not a value by itself; use it after \"in\", or in min(), max() or len()");
    return result;
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const { tokens_.fail(offset, message); }
  const Token& token() const { return tokens_.current(); }
  void advance() { tokens_.advance(); }

  std::string unexpected() const {
    if (token().kind == TokenKind::end) return "the expression ends too early";
    if (token().spelling == "=") return "\"=\" is not a comparison; write \"==\"";
    if (token().spelling == "&" || token().spelling == "|" || token().spelling == "!")
      return fmt::format("\"{}\" is not known here; write \"and\", \"or\", \"not\"", token().spelling);
    if (token().kind == TokenKind::symbol || token().kind == TokenKind::name)
      return fmt::format("\"{}\" is not expected here", token().spelling);
    return fmt::format("{} is not expected here", token().value.to_literal());
  }

  bool at(std::string_view spelling) const {
    return (token().kind == TokenKind::symbol || token().kind == TokenKind::name) && token().spelling == spelling;
  }
  bool take(std::string_view spelling) {
    if (!at(spelling)) return false;
    advance();
    return true;
  }
  void expect(std::string_view spelling) {
    if (!take(spelling)) {
      if (token().kind == TokenKind::end) fail(token().offset, fmt::format("\"{}\" is missing", spelling));
      fail(token().offset, fmt::format("{}; \"{}\" should stand here", unexpected(), spelling));
    }
  }

  /// Must be called before each recursion that depends on the text; the caller decrements nesting_ afterwards.
  void go_deeper() {
    if (++nesting_ > kMaximumExpressionDepth) fail(token().offset, "the expression is nested too deeply");
  }

  // ---- nodes

  ExpressionPointer finish(ExpressionNode node) const {
    for (const auto& child : node.children) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > kMaximumExpressionDepth) fail(node.offset, "the expression is nested too deeply");
    return std::make_shared<const ExpressionNode>(std::move(node));
  }
  static ExpressionNode node(ExpressionNode::Kind kind, std::size_t offset) {
    ExpressionNode result;
    result.kind = kind;
    result.offset = static_cast<std::uint32_t>(offset);
    return result;
  }
  ExpressionPointer binary(Operator op, ExpressionPointer left, ExpressionPointer right) {
    no_list(left);
    no_list(right);
    auto result = node(ExpressionNode::Kind::binary, left->offset);
    result.op = op;
    result.children = {std::move(left), std::move(right)};
    return finish(std::move(result));
  }
  void no_list(const ExpressionPointer& operand) const {
    if (operand->kind == ExpressionNode::Kind::list)
      fail(operand->offset, "a list is not a value by itself; use it after \"in\", or in min(), max() or len()");
  }

  // ---- grammar, loosest first

  ExpressionPointer parse_conditional() {
    go_deeper();
    auto value = parse_logical(ExpressionNode::Kind::disjunction);
    if (at("if")) {
      advance();
      no_list(value);
      auto result = node(ExpressionNode::Kind::conditional, value->offset);
      auto condition = parse_logical(ExpressionNode::Kind::disjunction);
      expect("else");
      auto other = parse_conditional();
      no_list(condition);
      no_list(other);
      result.children = {std::move(value), std::move(condition), std::move(other)};
      value = finish(std::move(result));
    }
    --nesting_;
    return value;
  }

  ExpressionPointer parse_logical(ExpressionNode::Kind kind) {
    const bool outer = kind == ExpressionNode::Kind::disjunction;
    auto operand = [&] { return outer ? parse_logical(ExpressionNode::Kind::conjunction) : parse_not(); };
    const std::string_view word = outer ? "or" : "and";
    auto first = operand();
    if (!at(word)) return first;
    auto result = node(kind, first->offset);
    auto add = [&](const ExpressionPointer& child) {
      no_list(child);
      if (child->kind == kind)
        result.children.insert(result.children.end(), child->children.begin(), child->children.end());
      else
        result.children.push_back(child);
    };
    add(first);
    while (take(word)) add(operand());
    return finish(std::move(result));
  }

  ExpressionPointer parse_not() {
    if (!at("not")) return parse_comparison();
    go_deeper();
    auto result = node(ExpressionNode::Kind::unary, token().offset);
    result.op = Operator::logical_not;
    advance();
    result.children = {parse_not()};
    no_list(result.children[0]);
    --nesting_;
    return finish(std::move(result));
  }

  std::optional<Relation> take_comparison() {
    if (take("<")) return Relation::less;
    if (take("<=")) return Relation::less_equal;
    if (take(">")) return Relation::greater;
    if (take(">=")) return Relation::greater_equal;
    if (take("==")) return Relation::equal;
    if (take("!=")) return Relation::not_equal;
    if (take("in")) return Relation::in;
    if (at("not")) {
      const auto offset = token().offset;
      advance();
      if (take("in")) return Relation::not_in;
      fail(offset, "\"not\" is not expected here; \"not in\" is the comparison");
    }
    return std::nullopt;
  }

  ExpressionPointer parse_comparison() {
    auto first = parse_sum();
    auto result = node(ExpressionNode::Kind::comparison, first->offset);
    result.children.push_back(std::move(first));
    while (const auto comparison = take_comparison()) {
      result.comparisons.push_back(*comparison);
      result.children.push_back(parse_sum());
    }
    if (result.comparisons.empty()) return result.children[0];
    for (std::size_t i = 0; i < result.children.size(); ++i) {
      // an operand may be a list only directly after "in", and at the end
      const bool after_in =
          i > 0 && (result.comparisons[i - 1] == Relation::in || result.comparisons[i - 1] == Relation::not_in);
      const bool last = i + 1 == result.children.size();
      if (!(after_in && last)) no_list(result.children[i]);
    }
    return finish(std::move(result));
  }

  ExpressionPointer parse_sum() {
    auto left = parse_product();
    for (;;) {
      if (take("+"))
        left = binary(Operator::add, std::move(left), parse_product());
      else if (take("-"))
        left = binary(Operator::subtract, std::move(left), parse_product());
      else
        return left;
    }
  }

  ExpressionPointer parse_product() {
    auto left = parse_unary();
    for (;;) {
      if (take("*"))
        left = binary(Operator::multiply, std::move(left), parse_unary());
      else if (take("/"))
        left = binary(Operator::divide, std::move(left), parse_unary());
      else if (take("//"))
        left = binary(Operator::floor_divide, std::move(left), parse_unary());
      else if (take("%"))
        left = binary(Operator::modulo, std::move(left), parse_unary());
      else
        return left;
    }
  }

  ExpressionPointer parse_unary() {
    if (!at("-") && !at("+")) return parse_power();
    go_deeper();
    const bool minus = at("-");
    auto result = node(ExpressionNode::Kind::unary, token().offset);
    result.op = minus ? Operator::negate : Operator::plus;
    advance();
    after_minus_ = minus;
    auto operand = parse_unary();
    after_minus_ = false;
    no_list(operand);
    --nesting_;
    // A signed number is parsed as a number, so that a negative constant prints and parses as itself; a second sign
    // remains an operator. (2^63 is stored as -2^63 from the start, and is unsigned in the text.)
    const bool number =
        operand->kind == ExpressionNode::Kind::constant && !operand->value.is_string() && !operand->value.is_bool();
    if (minus && number && (operand->value.to_literal().front() != '-' || tokens_.text()[operand->offset] != '-')) {
      auto folded = *operand;
      folded.offset = result.offset;
      if (folded.value.is_real())
        folded.value = Value(-folded.value.as_real());
      else
        folded.value = Value(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(folded.value.as_integer())));
      return finish(std::move(folded));
    }
    result.children = {std::move(operand)};
    return finish(std::move(result));
  }

  ExpressionPointer parse_power() {
    auto base = parse_primary();
    if (!take("**")) return base;
    go_deeper();
    auto exponent = parse_unary();  // right-associative; 2 ** -1 is valid
    --nesting_;
    return binary(Operator::power, std::move(base), std::move(exponent));
  }

  ExpressionPointer parse_primary() {
    const Token token = this->token();
    const bool after_minus = std::exchange(after_minus_, false);
    switch (token.kind) {
      case TokenKind::number:
      case TokenKind::text: {
        advance();
        if (token.too_large && (!after_minus || at("**"))) fail(token.offset, "this integer does not fit into 64 bits");
        auto result = node(ExpressionNode::Kind::constant, token.offset);
        result.value = token.value;
        return finish(std::move(result));
      }
      case TokenKind::name:
        return parse_name(token);
      case TokenKind::symbol:
        if (token.spelling == "(" || token.spelling == "[") return parse_bracket(token);
        [[fallthrough]];
      case TokenKind::end:
        break;
    }
    fail(token.offset, unexpected());
  }

  ExpressionPointer parse_bracket(const Token& open) {
    advance();
    const std::string_view close = open.spelling == "(" ? ")" : "]";
    auto list = node(ExpressionNode::Kind::list, open.offset);
    bool comma = false;
    while (!at(close)) {
      auto item = parse_conditional();
      no_list(item);
      list.children.push_back(std::move(item));
      comma = take(",");
      if (!comma) break;
    }
    const bool grouping = open.spelling == "(" && list.children.size() == 1 && !comma;
    expect(close);
    return grouping ? list.children[0] : finish(std::move(list));
  }

  ExpressionPointer parse_name(const Token& token) {
    static constexpr std::array<std::string_view, 6> kReserved{"and", "or", "not", "if", "else", "in"};
    for (const auto word : kReserved)
      if (token.spelling == word) fail(token.offset, unexpected());
    advance();
    if (token.spelling == "True" || token.spelling == "False") {
      auto result = node(ExpressionNode::Kind::constant, token.offset);
      result.value = Value(token.spelling == "True");
      return finish(std::move(result));
    }
    if (at("(")) return parse_call(token);
    auto result = node(ExpressionNode::Kind::name, token.offset);
    result.text = std::string(token.spelling);
    return finish(std::move(result));
  }

  ExpressionPointer parse_call(const Token& token) {
    std::string_view name = token.spelling;
    if (name.starts_with("math.")) name.remove_prefix(5);
    const FunctionEntry* entry = nullptr;
    for (const auto& candidate : kFunctions)
      if (candidate.name == name) entry = &candidate;
    if (entry == nullptr) {
      std::vector<std::string> names;
      for (const auto& candidate : kFunctions) names.emplace_back(candidate.name);
      fail(token.offset, fmt::format("there is no function \"{}\"{}", token.spelling, suggestion(name, names)));
    }
    advance();  // (
    auto result = node(ExpressionNode::Kind::call, token.offset);
    result.function = entry->function;
    while (!at(")")) {
      result.children.push_back(parse_conditional());
      if (!take(",")) break;
    }
    expect(")");
    const auto count = static_cast<int>(result.children.size());
    if (count < entry->least || count > entry->most)
      fail(token.offset, fmt::format("{}() takes {} argument{}, not {}", entry->name,
                                     entry->least == entry->most ? fmt::format("{}", entry->least)
                                     : entry->most > 2           ? "one or more"
                                                                 : fmt::format("{} or {}", entry->least, entry->most),
                                     entry->least == 1 && entry->most == 1 ? "" : "s", count));
    const bool takes_list =
        entry->function == Function::min || entry->function == Function::max || entry->function == Function::len;
    for (const auto& child : result.children)
      if (!takes_list || count > 1) no_list(child);
    return finish(std::move(result));
  }

  Tokens tokens_;
  std::uint32_t nesting_ = 0;
  bool after_minus_ = false;
};

}  // namespace

std::string_view function_text(Function function) {
  for (const auto& entry : kFunctions)
    if (entry.function == function) return entry.name;
  return "";
}

ExpressionPointer parse_expression(std::string_view text, const SourcePlace& place) {
  return Parser(text, place).parse();
}

}  // namespace ergotune
