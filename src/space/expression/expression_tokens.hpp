// Splits the text of an expression into tokens.
#pragma once

#include <string>
#include <string_view>

#include "ergotune/error.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

enum class TokenKind { end, number, text, name, symbol };
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;  // of names and symbols
  Value value;                // of numbers and texts
  bool too_large = false;     // 2^63, which is valid only after a minus
  std::size_t offset = 0;
};

/// Returns the text for messages; of a long text, only the part near `offset`.
std::string excerpt(std::string_view text, std::size_t offset = 0);

class Tokens {
 public:
  /// Reads the first token. `text` and `place` must outlive this object; `place` as in Expression::parse.
  Tokens(std::string_view text, const SourcePlace& place) : text_(text), place_(place) { advance(); }

  const Token& current() const { return token_; }
  /// Reads the next token; stays at the end once it is reached. Throws UserError for an invalid token.
  void advance();
  std::string_view text() const { return text_; }
  /// Throws UserError with the place of `offset`.
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

 private:
  void read_number();
  void read_hexadecimal();
  void finish_number(std::size_t end);
  void read_text(char quote);
  std::string read_escape(std::size_t at) const;
  void read_name();

  std::string_view text_;
  const SourcePlace& place_;
  std::size_t position_ = 0;
  Token token_;
};

}  // namespace ergotune
