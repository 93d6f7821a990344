#include "space/expression/program.hpp"

#include <algorithm>
#include <limits>

namespace ergotune::program {

OperationId Program::intern(Operation operation) {
  const Identity identity{operation.code, operation.a,    operation.b,    operation.c,
                          operation.word, operation.real, operation.text, operation.real_operands};
  if (const auto known = known_.find(identity); known != known_.end()) return known->second;
  for (const auto operand : {operation.a, operation.b, operation.c})
    if (operand != kNone && operation.code != Code::variable && operation.code != Code::position &&
        operation.code != Code::opaque)
      operation.level = std::max(operation.level, at(operand).level);
  const auto id = static_cast<OperationId>(operations_.size());
  operations_.push_back(operation);
  known_.emplace(identity, id);
  return id;
}

OperationId Program::make(Code code, bool real, OperationId a, OperationId b, double low, double high) {
  check(real, low, high);
  Operation operation;
  operation.code = code;
  operation.real = real;
  operation.a = a;
  operation.b = b;
  operation.real_operands = at(a).real;
  operation.low = low;
  operation.high = high;
  if (!real) widen(operation);
  return intern(operation);
}

OperationId Program::integer(std::int64_t value) {
  Operation operation;
  operation.word = value;
  operation.low = operation.high = static_cast<double>(value);
  widen(operation);
  operation.boolean = value == 0 || value == 1;
  return intern(operation);
}

OperationId Program::real(double value) {
  if (!(std::fabs(value) <= kHuge)) throw Untyped{};
  Operation operation;
  operation.real = true;
  operation.word = std::bit_cast<std::int64_t>(value);
  operation.low = operation.high = value;
  return intern(operation);
}

std::int64_t Program::text_rank(const std::string& text) const {
  const auto found = std::lower_bound(texts_.begin(), texts_.end(), text);
  if (found == texts_.end() || *found != text) throw Untyped{};
  return found - texts_.begin();
}

OperationId Program::text(const std::string& text) {
  Operation operation;
  operation.text = true;
  operation.word = text_rank(text);
  operation.low = operation.high = static_cast<double>(operation.word);
  return intern(operation);
}

OperationId Program::variable(std::uint32_t parameter) {
  if (const auto known = variables_.find(parameter); known != variables_.end()) return known->second;
  const auto& values = parameters_[parameter].values;
  if (values.size() == 1) {  // a single value is a constant
    const Value& only = values[0];
    return only.is_string() ? text(only.as_string())
           : only.is_real() ? real(only.as_real())
                            : integer(only.as_integer());
  }
  const auto texts =
      static_cast<std::size_t>(std::ranges::count_if(values, [](const Value& v) { return v.is_string(); }));
  if (texts != 0 && texts != values.size()) throw Untyped{};
  Operation operation;
  operation.code = Code::variable;
  operation.a = static_cast<OperationId>(parameter);
  operation.text = texts != 0;
  operation.level = static_cast<std::int32_t>(parameter);
  operation.real = texts == 0 && std::ranges::any_of(values, [](const Value& v) { return v.is_real(); });
  operation.low = std::numeric_limits<double>::infinity();
  operation.high = -operation.low;
  for (const auto& value : values) {
    double x = 0;
    if (operation.text) {
      x = static_cast<double>(text_rank(value.as_string()));
    } else {
      x = value.as_real();
      // an integer among reals must be represented exactly
      if (operation.real && !value.is_real() && std::fabs(x) > kExact) throw Untyped{};
      if (std::isnan(x)) throw Untyped{};
    }
    operation.low = std::min(operation.low, x);
    operation.high = std::max(operation.high, x);
  }
  check(operation.real, operation.low, operation.high);
  if (!operation.real) widen(operation);
  operation.boolean = !operation.real && !operation.text && operation.low >= 0 && operation.high <= 1;
  const OperationId id = intern(operation);
  variables_.emplace(parameter, id);
  return id;
}

OperationId Program::position(std::uint32_t parameter) {
  Operation operation;
  operation.code = Code::position;
  operation.a = static_cast<OperationId>(parameter);
  operation.level = static_cast<std::int32_t>(parameter);
  operation.high = static_cast<double>(parameters_[parameter].values.size() - 1);
  return intern(operation);
}

OperationId Program::opaque(Call call) {
  Operation operation;
  operation.code = Code::opaque;
  operation.a = static_cast<OperationId>(calls_.size());
  operation.low = -kWide;
  operation.high = kWide;
  for (const auto input : call.inputs) operation.level = std::max(operation.level, at(input).level);
  calls_.push_back(std::move(call));
  return intern(operation);
}

std::vector<std::uint32_t> Program::variables_of(OperationId id) {
  std::vector<std::uint32_t> result;
  visited_.resize(size(), 0);
  ++visit_;
  std::vector<OperationId> open{id};
  while (!open.empty()) {
    const OperationId at = open.back();
    open.pop_back();
    if (at == kNone || visited_[static_cast<std::size_t>(at)] == visit_) continue;
    visited_[static_cast<std::size_t>(at)] = visit_;
    const Operation& operation = this->at(at);
    if (operation.code == Code::variable || operation.code == Code::position)
      result.push_back(static_cast<std::uint32_t>(operation.a));
    else if (operation.code == Code::opaque)
      open.insert(open.end(), call(operation.a).inputs.begin(), call(operation.a).inputs.end());
    else if (operation.level >= 0)
      open.insert(open.end(), {operation.a, operation.b, operation.c});
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace ergotune::program
