#include "ergotune/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "space/expression/expression_tokens.hpp"
#include "space/expression/expression_tree.hpp"

namespace ergotune {

Expression::Expression() : root_(std::make_shared<const ExpressionNode>()), text_("0") {}

Expression Expression::parse(std::string_view text, SourcePlace place) {
  Expression result;
  result.root_ = parse_expression(text, place);
  result.text_ = std::string(text);
  result.names_ = collect_names(*result.root_);
  result.place_ = std::move(place);
  return result;
}

Expression Expression::constant(const Value& value) {
  Expression result;
  ExpressionNode node;
  node.value = value;
  result.root_ = std::make_shared<const ExpressionNode>(std::move(node));
  result.text_ = value.to_literal();
  return result;
}

Value Expression::evaluate(const Scope& scope) const {
  try {
    return evaluate_tree(*root_, scope);
  } catch (const EvaluationFault& fault) {
    throw UserError(fmt::format("{} in \"{}\"", fault.message, excerpt(text_)), place_);
  }
}

Value Expression::evaluate(const Constants& constants) const {
  std::vector<std::string> known;
  for (const auto& name : names_) {
    if (constants.find(name) != constants.end()) continue;
    if (known.empty())
      for (const auto& [key, value] : constants) known.push_back(key);
    throw UserError(fmt::format("unknown name \"{}\" in \"{}\"{}", name, excerpt(text_), suggestion(name, known)),
                    place_);
  }
  return evaluate([&](std::string_view name) -> const Value* {
    const auto found = constants.find(name);
    return found == constants.end() ? nullptr : &found->second;
  });
}

std::string Expression::to_string() const { return print_expression(*root_); }

Template Template::parse(std::string_view text, SourcePlace place) {
  Template result;
  result.text_ = std::string(text);
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t open = text.find("{{", position);
    if (open != position) {
      Part part;
      part.literal = std::string(text.substr(position, open == std::string_view::npos ? open : open - position));
      result.parts_.push_back(std::move(part));
    }
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open + 2);
    SourcePlace inner = place;
    if (inner.line > 0) inner.column = std::max(inner.column, 1) + static_cast<int>(open) + 2;
    if (close == std::string_view::npos)
      throw UserError(fmt::format("\"{{{{\" is not closed by \"}}}}\" in \"{}\"", excerpt(text, open)), inner);
    Part part;
    part.is_expression = true;
    part.expression = Expression::parse(text.substr(open + 2, close - open - 2), inner);
    result.parts_.push_back(std::move(part));
    position = close + 2;
  }
  return result;
}

std::string Template::render(const Scope& scope) const {
  std::string result;
  for (const auto& part : parts_)
    result += part.is_expression ? part.expression.evaluate(scope).to_string() : part.literal;
  return result;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> result;
  for (const auto& part : parts_)
    if (part.is_expression) result.insert(result.end(), part.expression.names().begin(), part.expression.names().end());
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace ergotune
