#include "space/expression/expression_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace ergotune {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string printable(char c) {
  return std::isprint(static_cast<unsigned char>(c)) ? std::string(1, c)
                                                     : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t offset) {
  constexpr std::size_t kAround = 60;
  const std::size_t begin = offset > kAround ? std::min(offset - kAround, text.size()) : 0;
  const std::string_view part = text.substr(begin, 2 * kAround);
  if (text.size() <= 2 * kAround) return std::string(text);
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", part, begin + part.size() < text.size() ? "..." : "");
}

void Tokens::fail(std::size_t offset, const std::string& message) const {
  SourcePlace place = place_;
  if (place.line > 0) place.column = std::max(place.column, 1) + static_cast<int>(offset);
  throw UserError(fmt::format("{} (column {} of \"{}\")", message, offset + 1, excerpt(text_, offset)), place);
}

void Tokens::advance() {
  while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  token_ = Token{};
  token_.offset = position_;
  if (position_ >= text_.size()) return;
  const char c = text_[position_];
  const char next = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  if (is_digit(c) || (c == '.' && is_digit(next))) return read_number();
  if (c == '\'' || c == '"') return read_text(c);
  if (is_name_start(c)) return read_name();
  static constexpr std::array<std::string_view, 7> kPairs{"<=", ">=", "==", "!=", "//", "**", "&&"};
  token_.kind = TokenKind::symbol;
  token_.spelling = text_.substr(position_, 1);
  for (const auto pair : kPairs)
    if (text_.substr(position_, 2) == pair) token_.spelling = text_.substr(position_, 2);
  if (token_.spelling == "&&") token_.spelling = token_.spelling.substr(0, 1);
  if (token_.spelling.size() == 1 && std::string_view("<>+-*/%()[],=&|!").find(c) == std::string_view::npos)
    fail(position_, fmt::format("\"{}\" is not part of the expression language", printable(c)));
  position_ += token_.spelling.size();
}

void Tokens::read_number() {
  const std::size_t begin = position_;
  std::size_t end = begin;
  auto digits = [&] {
    while (end < text_.size() &&
           (is_digit(text_[end]) || (text_[end] == '_' && end > begin && is_digit(text_[end - 1]) &&
                                     end + 1 < text_.size() && is_digit(text_[end + 1]))))
      ++end;
  };
  token_.kind = TokenKind::number;
  if (text_[begin] == '0' && begin + 1 < text_.size() && (text_[begin + 1] == 'x' || text_[begin + 1] == 'X'))
    return read_hexadecimal();
  digits();
  bool real = false;
  if (end < text_.size() && text_[end] == '.') {
    real = true;
    ++end;
    digits();
  }
  if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
    if (exponent < text_.size() && is_digit(text_[exponent])) {
      real = true;
      end = exponent;
      digits();
    }
  }
  std::string spelling;
  for (const char c : text_.substr(begin, end - begin))
    if (c != '_') spelling += c;
  if (real) {
    double value = 0;
    const auto result = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
      // from_chars does not distinguish overflow and underflow; the sign of the exponent does
      value = spelling.find("e-") != std::string::npos || spelling.find("E-") != std::string::npos ? 0.0 : HUGE_VAL;
    }
    token_.value = Value(value);
  } else {
    std::uint64_t value = 0;
    const auto result = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
    if (result.ec != std::errc{} || value > std::uint64_t{1} << 63)
      fail(begin, "this integer does not fit into 64 bits");
    token_.too_large = value == std::uint64_t{1} << 63;
    token_.value = Value(static_cast<std::int64_t>(value));
  }
  finish_number(end);
}

void Tokens::read_hexadecimal() {
  const char* begin = text_.data() + position_ + 2;
  std::uint64_t value = 0;
  const auto [stop, code] = std::from_chars(begin, text_.data() + text_.size(), value, 16);
  if (code != std::errc{} || value > static_cast<std::uint64_t>(INT64_MAX))
    fail(position_, "this hexadecimal number does not fit into 64 bits");
  token_.value = Value(static_cast<std::int64_t>(value));
  finish_number(static_cast<std::size_t>(stop - text_.data()));
}

void Tokens::finish_number(std::size_t end) {
  if (end < text_.size() && is_name_start(text_[end])) fail(end, "a name cannot follow a number directly");
  position_ = end;
}

/// Reads an escape sequence as Python does: an unknown one stays unchanged, including the backslash.
std::string Tokens::read_escape(std::size_t at) const {
  static constexpr std::string_view kLetters = "ntrabfv\\'\"", kMeanings = "\n\t\r\a\b\f\v\\'\"";
  const char c = text_[at];
  if (const auto known = kLetters.find(c); known != std::string_view::npos) return {kMeanings[known]};
  if (is_digit(c) || std::string_view("xuUN").find(c) != std::string_view::npos)
    fail(at - 1, "characters by their number are not part of the expression language: write the character itself");
  return {'\\', c};
}

void Tokens::read_text(char quote) {
  std::string value;
  std::size_t i = position_ + 1;
  for (; i < text_.size() && text_[i] != quote; ++i) {
    if (text_[i] != '\\') {
      value += text_[i];
    } else if (++i < text_.size()) {
      value += read_escape(i);
    }
  }
  if (i >= text_.size()) fail(position_, "this text is not closed");
  token_.kind = TokenKind::text;
  token_.value = Value(std::move(value));
  position_ = i + 1;
}

void Tokens::read_name() {
  std::size_t end = position_;
  while (end < text_.size()) {
    const char c = text_[end];
    const bool dot = c == '.' && end + 1 < text_.size() && is_name_start(text_[end + 1]);
    if (!is_name_start(c) && !is_digit(c) && !dot) break;
    ++end;
  }
  token_.kind = TokenKind::name;
  token_.spelling = text_.substr(position_, end - position_);
  position_ = end;
}

}  // namespace ergotune
