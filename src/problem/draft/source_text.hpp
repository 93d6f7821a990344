// Reads the text of a source without a parser: words, numbers, lists and the parts of expressions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_source/identifiers.hpp"

namespace ergotune::draft {

/// Returns the positions behind each occurrence of a name in `text` before `end`.
std::vector<std::size_t> ends_of(const std::string& text, const std::string& name, std::size_t end);
/// Returns the first position from `at` that is not blank; the length of the text if there is none.
std::size_t next_character(const std::string& text, std::size_t at);
/// Returns the initialiser of the name before `at`, if '=' stands there: up to a comma, semicolon or closing bracket.
std::string initialiser_at(const std::string& text, std::size_t at);
/// Returns a text without the casts to integers in its expressions: "n" for `(int)n`, `std::size_t(n)` and
/// `static_cast<int>(n)`.
std::string without_casts(const std::string& text);
/// Returns the parts of the list that opens at `open`, such as "(n, 16)"; none if it does not end in this statement.
std::vector<std::string> list_at(const std::string& text, std::size_t open, char close);
/// Returns the parts of a text between separators that are outside of brackets.
std::vector<std::string> parts_of(const std::string& text, const char* separators);
/// Returns "a * b" for "((a * b))".
std::string without_parentheses(const std::string& text);

/// Returns the names of an expression of a problem, in which "//" divides.
kernel_source::Identifiers names_in(std::string expression);

/// Returns "192" of `__launch_bounds__(192, 2)` in the head of a function; empty if it has none.
std::string launch_bound_in(const std::string& head);

std::optional<long> whole_number(const std::string& text);
std::string upper(std::string text);
bool contains(const std::string& text, std::initializer_list<std::string_view> parts);
/// Replaces runs of white space by one blank, because std::regex recurses for each character of a run.
std::string one_blank(const std::string& text);

}  // namespace ergotune::draft
