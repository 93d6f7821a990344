#include "space/columns.hpp"

#include <bit>
#include <cmath>

#include "space/arithmetic.hpp"

namespace ergotune {

using program::Code;
using program::kNone;
using program::Operation;
using program::OperationId;

Columns::Columns(const program::Program& program, std::span<const OperationId> inputs,
                 std::span<const OperationId> operations)
    : program_(program), index_(program.size(), kMissing) {
  for (const auto id : inputs) add(id);
  for (const auto id : operations) {
    const Operation& operation = program.at(id);
    const bool leaf = operation.code == Code::variable || operation.code == Code::position;
    if (!leaf) operations_.push_back(id);
    add(id);
    if (leaf || operation.code == Code::opaque) continue;
    for (const auto operand : {operation.a, operation.b, operation.c})
      if (operand != kNone && program.is_constant(operand)) add(operand);
  }
  storage_.resize(static_cast<std::size_t>(used_) * kLanes);
  for (std::size_t id = 0; id < program.size(); ++id)
    if (index_[id] != kMissing && program.is_constant(static_cast<OperationId>(id)))
      std::fill_n(column(static_cast<OperationId>(id)), kLanes,
                  program.at(static_cast<OperationId>(id)).word);
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
      evaluate_real(operation, out, lanes);
    } else {
      evaluate_integer(operation, out, lanes);
    }
  }
}

void Columns::evaluate_integer(const Operation& operation, std::int64_t* out, std::size_t lanes) {
  const std::int64_t* a = column(operation.a);
  const std::int64_t* b = operation.b == kNone ? a : column(operation.b);
  const auto each = [&](auto f) {
    for (std::size_t i = 0; i < lanes; ++i) out[i] = f(a[i], b[i]);
  };
  const auto each_real = [&](auto f) {
    for (std::size_t i = 0; i < lanes; ++i)
      out[i] = std::bit_cast<std::int64_t>(static_cast<double>(f(a[i], b[i])));
  };
  // 32-bit division costs a fraction of 64-bit division
  const auto narrow = [&](OperationId id) {
    const Operation& operand = program_.at(id);
    return operand.low >= 0 && operand.high < 0x1p32;
  };
  switch (operation.code) {
    case Code::add:
      each([](auto x, auto y) { return x + y; });
      return;
    case Code::subtract:
      each([](auto x, auto y) { return x - y; });
      return;
    case Code::multiply:
      each([](auto x, auto y) { return x * y; });
      return;
    case Code::negate:
      each([](auto x, auto) { return -x; });
      return;
    case Code::floor_divide:
      if (narrow(operation.a) && narrow(operation.b))
        each([](auto x, auto y) -> std::int64_t {
          return y == 0 ? 0 : static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y);
        });
      else
        each([](auto x, auto y) { return y == 0 ? 0 : arithmetic::floor_divide(x, y); });
      return;
    case Code::modulo:
      if (narrow(operation.a) && narrow(operation.b))
        each([](auto x, auto y) -> std::int64_t {
          return y == 0 ? 0 : static_cast<std::uint32_t>(x) % static_cast<std::uint32_t>(y);
        });
      else
        each([](auto x, auto y) { return y == 0 ? 0 : arithmetic::floor_modulo(x, y); });
      return;
    case Code::divide:
      each_real([](auto x, auto y) { return y == 0 ? 0.0 : arithmetic::true_divide(x, y); });
      return;
    case Code::power:
      each([](auto x, auto y) {
        std::int64_t result = 0;
        arithmetic::power(x, y, result);
        return result;
      });
      return;
    case Code::minimum:
      each([](auto x, auto y) { return y < x ? y : x; });
      return;
    case Code::maximum:
      each([](auto x, auto y) { return y > x ? y : x; });
      return;
    case Code::absolute:
      each([](auto x, auto) { return x < 0 ? -x : x; });
      return;
    case Code::to_real:
      each_real([](auto x, auto) { return x; });
      return;
    case Code::less:
      each([](auto x, auto y) -> std::int64_t { return x < y; });
      return;
    case Code::less_equal:
      each([](auto x, auto y) -> std::int64_t { return x <= y; });
      return;
    case Code::equal:
      each([](auto x, auto y) -> std::int64_t { return x == y; });
      return;
    case Code::not_equal:
      each([](auto x, auto y) -> std::int64_t { return x != y; });
      return;
    case Code::logical_not:
      each([](auto x, auto) -> std::int64_t { return x == 0; });
      return;
    case Code::logical_and:
      each([](auto x, auto y) { return x & y; });
      return;
    case Code::logical_or:
      each([](auto x, auto y) { return x | y; });
      return;
    case Code::select: {
      const std::int64_t* c = column(operation.c);
      for (std::size_t i = 0; i < lanes; ++i) out[i] = a[i] != 0 ? b[i] : c[i];
      return;
    }
    default:
      return;  // the rest take reals
  }
}

void Columns::evaluate_real(const Operation& operation, std::int64_t* out, std::size_t lanes) {
  const std::int64_t* a = column(operation.a);
  const std::int64_t* b = operation.b == kNone ? a : column(operation.b);
  const auto real = [](std::int64_t word) { return std::bit_cast<double>(word); };
  const auto each = [&](auto f) {
    for (std::size_t i = 0; i < lanes; ++i)
      out[i] = std::bit_cast<std::int64_t>(static_cast<double>(f(real(a[i]), real(b[i]))));
  };
  const auto each_integer = [&](auto f) {
    for (std::size_t i = 0; i < lanes; ++i) out[i] = static_cast<std::int64_t>(f(real(a[i]), real(b[i])));
  };
  switch (operation.code) {
    case Code::add:
      each([](double x, double y) { return x + y; });
      return;
    case Code::subtract:
      each([](double x, double y) { return x - y; });
      return;
    case Code::multiply:
      each([](double x, double y) { return x * y; });
      return;
    case Code::negate:
      each([](double x, double) { return -x; });
      return;
    case Code::divide:
      each([](double x, double y) { return y == 0 ? 0.0 : x / y; });
      return;
    case Code::floor_divide:
      each([](double x, double y) { return y == 0 ? 0.0 : arithmetic::floor_divide(x, y); });
      return;
    case Code::modulo:
      each([](double x, double y) {
        if (y == 0) return 0.0;
        // whole numbers, by far the most frequent here, need no fmod
        if (x >= 0 && x < 0x1p31 && y >= 1 && y < 0x1p31) {
          const auto whole_x = static_cast<std::uint32_t>(x), whole_y = static_cast<std::uint32_t>(y);
          if (whole_x == x && whole_y == y) return static_cast<double>(whole_x % whole_y);
        }
        return arithmetic::floor_modulo(x, y);
      });
      return;
    case Code::power:
      each([](double x, double y) { return std::pow(x, y); });
      return;
    case Code::minimum:
      each([](double x, double y) { return y < x ? y : x; });
      return;
    case Code::maximum:
      each([](double x, double y) { return y > x ? y : x; });
      return;
    case Code::absolute:
      each([](double x, double) { return std::fabs(x); });
      return;
    case Code::sqrt:
      each([](double x, double) { return std::sqrt(x); });
      return;
    case Code::log:
      each([](double x, double) { return std::log(x); });
      return;
    case Code::log2:
      each([](double x, double) { return std::log2(x); });
      return;
    case Code::exp:
      each([](double x, double) { return std::exp(x); });
      return;
    case Code::ceil:
      each_integer([](double x, double) { return std::ceil(x); });
      return;
    case Code::floor:
      each_integer([](double x, double) { return std::floor(x); });
      return;
    case Code::round:
      each_integer([](double x, double) { return std::nearbyint(x); });
      return;
    case Code::truncate:
      each_integer([](double x, double) { return std::trunc(x); });
      return;
    case Code::less:
      each_integer([](double x, double y) { return x < y; });
      return;
    case Code::less_equal:
      each_integer([](double x, double y) { return x <= y; });
      return;
    case Code::equal:
      each_integer([](double x, double y) { return x == y; });
      return;
    case Code::not_equal:
      each_integer([](double x, double y) { return x != y; });
      return;
    default:
      return;
  }
}

std::vector<std::int64_t> value_words(const program::Program& program, OperationId variable) {
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
      words.push_back(std::bit_cast<std::int64_t>(values[v].as_real() + 0.0));  // one zero only
    else
      words.push_back(values[v].as_integer());
  }
  return words;
}

}  // namespace ergotune
