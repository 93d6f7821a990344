#include <algorithm>
#include <array>

#include "space/expression/expression_tree.hpp"

namespace ergotune {
namespace {

using Kind = ExpressionNode::Kind;

// Python's levels of precedence, lowest first.
enum Level { kConditional, kOr, kAnd, kNot, kCompare, kSum, kProduct, kUnary, kPower, kPrimary };

int level_of(const ExpressionNode& node) {
  switch (node.kind) {
    case Kind::constant: {
      if (node.value.is_string()) return kPrimary;
      const std::string text = node.value.to_literal();
      if (text.find(" - ") != std::string::npos) return kSum;
      return text.front() == '-' ? kUnary : kPrimary;
    }
    case Kind::name:
    case Kind::call:
    case Kind::list:
      return kPrimary;
    case Kind::conditional:
      return kConditional;
    case Kind::disjunction:
      return kOr;
    case Kind::conjunction:
      return kAnd;
    case Kind::comparison:
      return kCompare;
    case Kind::unary:
      return node.op == Operator::logical_not ? kNot : kUnary;
    case Kind::binary:
      switch (node.op) {
        case Operator::add:
        case Operator::subtract:
          return kSum;
        case Operator::power:
          return kPower;
        default:
          return kProduct;
      }
  }
  return kPrimary;
}

void print(const ExpressionNode& node, std::string& out);

void print_at(const ExpressionNode& node, int least, std::string& out) {
  const bool brackets = level_of(node) < least;
  if (brackets) out += '(';
  print(node, out);
  if (brackets) out += ')';
}

void print_items(const ExpressionNode& node, std::string& out) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) out += ", ";
    print_at(*node.children[i], kConditional, out);
  }
}

void print(const ExpressionNode& node, std::string& out) {
  switch (node.kind) {
    case Kind::constant:
      out += node.value.to_literal();
      return;
    case Kind::name:
      out += node.text;
      return;
    case Kind::call:
      out += function_text(node.function);
      out += '(';
      print_items(node, out);
      out += ')';
      return;
    case Kind::list:
      out += '[';
      print_items(node, out);
      out += ']';
      return;
    case Kind::conditional:
      print_at(*node.children[0], kOr, out);
      out += " if ";
      print_at(*node.children[1], kOr, out);
      out += " else ";
      print_at(*node.children[2], kConditional, out);
      return;
    case Kind::disjunction:
    case Kind::conjunction: {
      const int level = level_of(node);
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        if (i > 0) out += level == kOr ? " or " : " and ";
        print_at(*node.children[i], level + 1, out);
      }
      return;
    }
    case Kind::comparison:
      print_at(*node.children[0], kSum, out);
      for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
        out += ' ';
        out += comparison_text(node.comparisons[i]);
        out += ' ';
        print_at(*node.children[i + 1], kSum, out);
      }
      return;
    case Kind::unary:
      out += operator_text(node.op);
      print_at(*node.children[0], level_of(node), out);
      return;
    case Kind::binary: {
      const int level = level_of(node);
      if (level == kPower) {  // its right operand binds less tightly than its left one
        print_at(*node.children[0], kPrimary, out);
        out += "**";
        print_at(*node.children[1], kUnary, out);
        return;
      }
      print_at(*node.children[0], level, out);
      out += ' ';
      out += operator_text(node.op);
      out += ' ';
      print_at(*node.children[1], level + 1, out);
      return;
    }
  }
}

void collect(const ExpressionNode& node, std::vector<std::string>& names) {
  if (node.kind == Kind::name) names.push_back(node.text);
  if (node.kind == Kind::call && node.function == Function::occupancy)
    for (const auto name : occupancy_required_names()) names.emplace_back(name);
  for (const auto& child : node.children) collect(*child, names);
}

}  // namespace

std::string_view operator_text(Operator op) {
  constexpr std::array kTexts = {"-", "+", "not ", "+", "-", "*", "/", "//", "%", "**"};
  return kTexts.at(static_cast<std::size_t>(op));
}

std::string_view comparison_text(Relation comparison) {
  constexpr std::array kTexts = {"<", "<=", ">", ">=", "==", "!=", "in", "not in"};
  return kTexts.at(static_cast<std::size_t>(comparison));
}

std::string print_expression(const ExpressionNode& node) {
  std::string text;
  print(node, text);
  return text;
}

bool same_form(const ExpressionNode& a, const ExpressionNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.comparisons != b.comparisons || a.children.size() != b.children.size())
    return false;
  if ((a.kind == Kind::unary || a.kind == Kind::binary) && a.op != b.op) return false;
  if (a.kind == Kind::call && a.function != b.function) return false;
  if (a.kind == Kind::constant &&
      (a.value.data().index() != b.value.data().index() || a.value.to_literal() != b.value.to_literal()))
    return false;
  return std::equal(a.children.begin(), a.children.end(), b.children.begin(),
                    [](const auto& x, const auto& y) { return same_form(*x, *y); });
}

std::vector<std::string> collect_names(const ExpressionNode& node) {
  std::vector<std::string> names;
  collect(node, names);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace ergotune
