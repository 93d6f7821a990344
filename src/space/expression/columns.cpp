#include "space/expression/columns.hpp"

#include <bit>
#include <cmath>

#include "space/expression/arithmetic.hpp"

namespace ergotune {

using program::Code;
using program::kNone;
using program::Operation;
using program::OperationId;

namespace {

/// Two input columns of integers (equal if an operation has one operand) and the output column.
struct Integers {
  const std::int64_t *a, *b;
  std::int64_t* out;
  std::size_t lanes;

  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < lanes; ++i) out[i] = f(a[i], b[i]);
  }
  template <class F>
  void each_real(F f) const {
    for (std::size_t i = 0; i < lanes; ++i) out[i] = std::bit_cast<std::int64_t>(static_cast<double>(f(a[i], b[i])));
  }
};

/// The same for reals, which are stored as bits.
struct Reals {
  const std::int64_t *a, *b;
  std::int64_t* out;
  std::size_t lanes;

  static double real(std::int64_t word) { return std::bit_cast<double>(word); }
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < lanes; ++i)
      out[i] = std::bit_cast<std::int64_t>(static_cast<double>(f(real(a[i]), real(b[i]))));
  }
  template <class F>
  void each_integer(F f) const {
    for (std::size_t i = 0; i < lanes; ++i) out[i] = static_cast<std::int64_t>(f(real(a[i]), real(b[i])));
  }
};

void divide_narrow(Code code, const Integers& columns) {
  if (code == Code::floor_divide)
    columns.each([](auto x, auto y) -> std::int64_t {
      return y == 0 ? 0 : static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y);
    });
  else
    columns.each([](auto x, auto y) -> std::int64_t {
      return y == 0 ? 0 : static_cast<std::uint32_t>(x) % static_cast<std::uint32_t>(y);
    });
}

void evaluate_integers(Code code, const Integers& columns) {
  switch (code) {
    case Code::add:
      return columns.each([](auto x, auto y) { return x + y; });
    case Code::subtract:
      return columns.each([](auto x, auto y) { return x - y; });
    case Code::multiply:
      return columns.each([](auto x, auto y) { return x * y; });
    case Code::negate:
      return columns.each([](auto x, auto) { return -x; });
    case Code::floor_divide:
      return columns.each([](auto x, auto y) { return y == 0 ? 0 : arithmetic::floor_divide(x, y); });
    case Code::modulo:
      return columns.each([](auto x, auto y) { return y == 0 ? 0 : arithmetic::floor_modulo(x, y); });
    case Code::divide:
      return columns.each_real([](auto x, auto y) { return y == 0 ? 0.0 : arithmetic::true_divide(x, y); });
    case Code::power:
      return columns.each([](auto x, auto y) {
        std::int64_t result = 0;
        arithmetic::power(x, y, result);
        return result;
      });
    case Code::minimum:
      return columns.each([](auto x, auto y) { return y < x ? y : x; });
    case Code::maximum:
      return columns.each([](auto x, auto y) { return y > x ? y : x; });
    case Code::absolute:
      return columns.each([](auto x, auto) { return x < 0 ? -x : x; });
    case Code::to_real:
      return columns.each_real([](auto x, auto) { return x; });
    case Code::less:
      return columns.each([](auto x, auto y) -> std::int64_t { return x < y; });
    case Code::less_equal:
      return columns.each([](auto x, auto y) -> std::int64_t { return x <= y; });
    case Code::equal:
      return columns.each([](auto x, auto y) -> std::int64_t { return x == y; });
    case Code::not_equal:
      return columns.each([](auto x, auto y) -> std::int64_t { return x != y; });
    case Code::logical_not:
      return columns.each([](auto x, auto) -> std::int64_t { return x == 0; });
    case Code::logical_and:
      return columns.each([](auto x, auto y) { return x & y; });
    case Code::logical_or:
      return columns.each([](auto x, auto y) { return x | y; });
    default:
      return;
  }
}

double modulo_of_reals(double x, double y) {
  if (y == 0) return 0.0;
  // integers, by far the most frequent values, do not need fmod
  if (x >= 0 && x < 0x1p31 && y >= 1 && y < 0x1p31) {
    const auto whole_x = static_cast<std::uint32_t>(x), whole_y = static_cast<std::uint32_t>(y);
    if (whole_x == x && whole_y == y) return static_cast<double>(whole_x % whole_y);
  }
  return arithmetic::floor_modulo(x, y);
}

void evaluate_reals(Code code, const Reals& columns) {
  switch (code) {
    case Code::add:
      return columns.each([](double x, double y) { return x + y; });
    case Code::subtract:
      return columns.each([](double x, double y) { return x - y; });
    case Code::multiply:
      return columns.each([](double x, double y) { return x * y; });
    case Code::negate:
      return columns.each([](double x, double) { return -x; });
    case Code::divide:
      return columns.each([](double x, double y) { return y == 0 ? 0.0 : x / y; });
    case Code::floor_divide:
      return columns.each([](double x, double y) { return y == 0 ? 0.0 : arithmetic::floor_divide(x, y); });
    case Code::modulo:
      return columns.each([](double x, double y) { return modulo_of_reals(x, y); });
    case Code::power:
      return columns.each([](double x, double y) { return std::pow(x, y); });
    case Code::minimum:
      return columns.each([](double x, double y) { return y < x ? y : x; });
    case Code::maximum:
      return columns.each([](double x, double y) { return y > x ? y : x; });
    case Code::absolute:
      return columns.each([](double x, double) { return std::fabs(x); });
    case Code::sqrt:
      return columns.each([](double x, double) { return std::sqrt(x); });
    case Code::log:
      return columns.each([](double x, double) { return std::log(x); });
    case Code::log2:
      return columns.each([](double x, double) { return std::log2(x); });
    case Code::exp:
      return columns.each([](double x, double) { return std::exp(x); });
    case Code::ceil:
      return columns.each_integer([](double x, double) { return std::ceil(x); });
    case Code::floor:
      return columns.each_integer([](double x, double) { return std::floor(x); });
    case Code::round:
      return columns.each_integer([](double x, double) { return std::nearbyint(x); });
    case Code::truncate:
      return columns.each_integer([](double x, double) { return std::trunc(x); });
    case Code::less:
      return columns.each_integer([](double x, double y) { return x < y; });
    case Code::less_equal:
      return columns.each_integer([](double x, double y) { return x <= y; });
    case Code::equal:
      return columns.each_integer([](double x, double y) { return x == y; });
    case Code::not_equal:
      return columns.each_integer([](double x, double y) { return x != y; });
    default:
      return;
  }
}

}  // namespace

Columns::Columns(const program::Program& program, std::span<const OperationId> inputs,
                 std::span<const OperationId> operations)
    : program_(program), index_(program.size(), kMissing) {
  for (const auto id : inputs) add(id);
  for (const auto id : operations) {
    const Operation& operation = program.at(id);
    const bool leaf = operation.code == Code::variable || operation.code == Code::position || program.is_constant(id);
    if (!leaf) operations_.push_back(id);
    add(id);
    if (leaf || operation.code == Code::opaque) continue;
    for (const auto operand : {operation.a, operation.b, operation.c})
      if (operand != kNone && program.is_constant(operand)) add(operand);
  }
  storage_.resize(static_cast<std::size_t>(used_) * kLanes);
  for (std::size_t id = 0; id < program.size(); ++id)
    if (index_[id] != kMissing && program.is_constant(static_cast<OperationId>(id)))
      std::fill_n(column(static_cast<OperationId>(id)), kLanes, program.at(static_cast<OperationId>(id)).word);
}

std::uint32_t Columns::add(OperationId id) {
  auto& index = index_[static_cast<std::size_t>(id)];
  if (index == kMissing) index = used_++;
  return index;
}

void Columns::evaluate(std::size_t lanes) {
  for (const auto id : operations_) {
    const Operation& operation = program_.at(id);
    std::int64_t* out = column(id);
    if (operation.code == Code::opaque) {
      const program::Call& call = program_.call(operation.a);
      std::vector<std::int64_t> positions(call.inputs.size());
      for (std::size_t i = 0; i < lanes; ++i) {
        for (std::size_t k = 0; k < positions.size(); ++k) positions[k] = column(call.inputs[k])[i];
        out[i] = call.function(positions.data());
      }
    } else if (operation.real_operands) {
      evaluate_reals(operation.code,
                     {column(operation.a), column(operation.b == kNone ? operation.a : operation.b), out, lanes});
    } else {
      evaluate_integer(operation, out, lanes);
    }
  }
}

void Columns::evaluate_integer(const Operation& operation, std::int64_t* out, std::size_t lanes) {
  const Integers columns{column(operation.a), column(operation.b == kNone ? operation.a : operation.b), out, lanes};
  if (operation.code == Code::select) {
    const std::int64_t* other = column(operation.c);
    for (std::size_t i = 0; i < lanes; ++i) out[i] = columns.a[i] != 0 ? columns.b[i] : other[i];
    return;
  }
  // 32-bit division is much faster than 64-bit division
  const auto narrow = [&](OperationId id) {
    const Operation& operand = program_.at(id);
    return operand.low >= 0 && operand.high < 0x1p32;
  };
  const bool divides = operation.code == Code::floor_divide || operation.code == Code::modulo;
  if (divides && narrow(operation.a) && narrow(operation.b))
    divide_narrow(operation.code, columns);
  else
    evaluate_integers(operation.code, columns);
}

std::vector<std::int64_t> value_description(const program::Program& program, OperationId variable) {
  const Operation& operation = program.at(variable);
  const auto& values = program.parameters()[static_cast<std::size_t>(operation.a)].values;
  std::vector<std::int64_t> words;
  words.reserve(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (operation.code == Code::position)
      words.push_back(static_cast<std::int64_t>(v));
    else if (operation.text)
      words.push_back(program.text_rank(values[v].as_string()));
    else if (operation.real)
      words.push_back(std::bit_cast<std::int64_t>(values[v].as_real() + 0.0));  // + 0.0 normalises -0.0
    else
      words.push_back(values[v].as_integer());
  }
  return words;
}

}  // namespace ergotune
