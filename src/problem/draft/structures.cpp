#include "problem/draft/structures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <string_view>

#include "base/text.hpp"
#include "ergotune/argument.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/element_type.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::Parameter;

/// A structure that a source defines.
struct Definition {
  std::string name, alias, members;
  bool packed = false;
  std::optional<long> alignment = 1;  ///< of alignas(16); nullopt: not understood
};

/// Moves `at` behind attributes, which are added to a definition.
void read_attributes(const std::string& text, std::size_t& at, Definition& definition) {
  for (;;) {
    at = next_character(text, at);
    const std::string name = text.substr(at, kernel_source::end_of_identifier(text, at) - at);
    if (name != "__attribute__" && name != "__align__" && name != "alignas") return;
    const std::size_t open = text.find('(', at);
    const std::vector<std::string> list =
        open == std::string::npos ? std::vector<std::string>() : list_at(text, open, ')');
    if (list.empty()) return;
    if (name != "__attribute__")
      definition.alignment = whole_number(list.front());
    else if (contains(list.front(), {"packed"}))
      definition.packed = true;
    else if (contains(list.front(), {"align"}))
      definition.alignment = std::nullopt;
    int depth = 0;
    for (at = open; at < text.size(); ++at) {
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    ++at;
  }
}

std::vector<Definition> definitions_in(const std::string& source) {
  const std::string text = one_blank(kernel_source::blank_comments(source));
  std::vector<Definition> definitions;
  for (const std::size_t behind : ends_of(text, "struct", text.size())) {
    Definition one;
    std::size_t at = behind;
    read_attributes(text, at, one);
    const std::size_t end = kernel_source::end_of_identifier(text, at);
    one.name = text.substr(at, end - at);
    at = next_character(text, end);
    const std::size_t close = text.find('}', at);
    if (text.compare(at, 1, "{") != 0 || close == std::string::npos) continue;
    one.members = text.substr(at + 1, close - at - 1);
    at = close + 1;
    read_attributes(text, at, one);
    if (trimmed(std::string_view(text).substr(0, behind - 6)).ends_with("typedef"))
      one.alias = text.substr(at, kernel_source::end_of_identifier(text, at) - at);
    definitions.push_back(std::move(one));
  }
  return definitions;
}

/// Returns the bytes of a structure as C lays it out; nullopt where a member is not understood.
std::optional<std::size_t> size_of_structure(const Definition& structure, const TypeNames& types, bool opencl) {
  constexpr long kLongest = 4096;  // elements of a member
  if (!structure.alignment || *structure.alignment < 1) return std::nullopt;
  std::size_t size = 0, largest = static_cast<std::size_t>(*structure.alignment);
  for (const std::string& declaration : parts_of(structure.members, ";")) {
    if (declaration.empty()) continue;
    const std::vector<std::string> names = parts_of(declaration, ",");
    const std::size_t blank = names.front().substr(0, names.front().find('[')).find_last_of(' ');
    if (blank == std::string::npos) return std::nullopt;
    const std::string type = resolved(types, names.front().substr(0, blank));
    const auto element = element_of(type);
    if (!element || type.starts_with("uint8[")) return std::nullopt;  // of a structure the alignment is not known
    const std::size_t width = element->width == 3 && opencl ? 4 : static_cast<std::size_t>(element->width),
                      own = size_of(*element_type(element->type)), bytes = own * width,
                      alignment = structure.packed ? 1
                                  : opencl         ? bytes
                                  : width % 2 == 0 ? std::min<std::size_t>(bytes, 16)
                                                   : own;
    for (std::string name : names) {
      std::size_t count = 1;
      const std::size_t bracket = name.find('[');
      if (bracket != std::string::npos) {
        const auto length = whole_number(std::string(trimmed(name.substr(bracket + 1, name.find(']') - bracket - 1))));
        if (!length || *length < 1 || *length > kLongest || name.find('[', bracket + 1) != std::string::npos)
          return std::nullopt;
        count = static_cast<std::size_t>(*length);
      }
      if (name.find_first_of("*&(:=") != std::string::npos) return std::nullopt;
      size = (size + alignment - 1) / alignment * alignment + count * bytes;
    }
    largest = std::max(largest, alignment);
  }
  return size == 0 ? std::nullopt : std::optional((size + largest - 1) / largest * largest);
}

/// A member of a structure, or an element of one that is an array or a vector.
struct Member {
  std::string type;                    ///< of the source, of a number
  std::string declared;                ///< name in the source
  std::size_t number = 0;              ///< of its declaration
  std::optional<std::size_t> element;  ///< of an array or a vector
  std::string place;                   ///< "[0]", ".x" behind the name

  std::string name() const {
    std::string text = declared;
    for (const char c : place)
      if (c != ']') text += kernel_source::in_identifier(c) ? c : '_';
    return text.starts_with('_') && declared.empty() ? text.substr(1) : text;
  }
};

/// Adds a number of the source's type, or the components of a vector.
void add_member(const std::string& type, const Element& element, bool opencl, Member member,
                std::vector<Member>& members) {
  member.type = unqualified(type);
  if (element.width == 1) return members.push_back(std::move(member));
  // "float" of float4 and "double" of double complex
  member.type.resize(std::min(member.type.find(' '), member.type.find_last_not_of("0123456789") + 1));
  const std::size_t components = element.width == 3 && opencl ? 4 : static_cast<std::size_t>(element.width);
  const std::string place = member.place;
  const std::size_t first = member.element.value_or(0) * components;
  for (std::size_t i = 0; i < components; ++i) {
    member.place = place + (components <= 4 ? fmt::format(".{}", "xyzw"[i]) : fmt::format(".s{:x}", i));
    member.element = first + i;
    members.push_back(member);
  }
}

/// Returns the members of a structure as a problem file has them; none for one that it cannot describe, with the
/// reason.
std::vector<Member> members_of(const std::string& source, bool opencl, const TypeNames& types,
                               const Definition& structure, std::string& reason) {
  constexpr long kMost = 64;
  std::vector<Member> members;
  std::size_t number = 0;
  for (const std::string& declaration : parts_of(structure.members, ";")) {
    if (declaration.empty()) continue;
    std::vector<std::string> names = parts_of(declaration, ",");
    const std::size_t blank = names.front().substr(0, names.front().find('[')).find_last_of(" *&");
    const std::string type = blank == std::string::npos
                                 ? std::string()
                                 : resolved(types, std::string(trimmed(names.front().substr(0, blank))));
    names.front().erase(0, blank == std::string::npos ? 0 : blank + 1);
    const auto element = element_of(type);
    for (const std::string& whole : names) {
      const std::size_t bracket = whole.find('[');
      const std::string name(trimmed(whole.substr(0, bracket)));
      std::optional<long> length = 1;
      if (bracket != std::string::npos)
        length = source_value(source, whole.substr(bracket + 1, whole.find(']') - bracket - 1));
      if (contains(declaration, {"*", "&"}))
        reason = fmt::format(
            "its member {} is a pointer, which is {{ name = \"&BUFFER\", type = \"uint64\", value = 0 }} there", name);
      else if (!element)
        reason = fmt::format("the type {} of its member {} is not known", type, name);
      else if (name.empty() || !std::ranges::all_of(name, kernel_source::in_identifier) || !length || *length < 1 ||
               *length > kMost || (bracket != std::string::npos && whole.find('[', bracket + 1) != std::string::npos))
        reason = fmt::format("its member \"{}\" was not understood", whole);
      if (!reason.empty()) return {};
      for (std::size_t i = 0; i < static_cast<std::size_t>(*length); ++i) {
        Member member{"", name, number, std::nullopt, ""};
        if (bracket != std::string::npos) member.element = i, member.place = fmt::format("[{}]", i);
        add_member(type, *element, opencl, std::move(member), members);
      }
      ++number;
    }
  }
  std::vector<Field> fields(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) fields[i].type = *element_type(element_of(members[i].type)->type);
  if (size_of_structure(structure, types, opencl) == size_of(fields)) return members;
  reason = structure.packed           ? "it is packed, and a problem file lays members out as C does"
           : structure.alignment != 1 ? "alignas makes it larger than its members"
                                      : "a problem file does not align its vectors";
  return {};
}

/// Returns the definition of a type; nullptr if there is none.
const Definition* structure_named(const std::string& type, const std::vector<Definition>& definitions) {
  const std::string name = type.starts_with("struct ") ? type.substr(7) : unqualified(type);
  const auto found =
      std::ranges::find_if(definitions, [&](const Definition& one) { return one.name == name || one.alias == name; });
  return found == definitions.end() ? nullptr : &*found;
}

/// Returns what the host program gives the members of a structure that it passes: of `Grid g{0.5f, width, height}`,
/// `{.width = 3}`, `g.width = 3`, `make_float2(1, 2)`. Members of which it is not found are "g.width".
std::vector<std::string> values_of(const DraftSource& source, std::string argument,
                                   const std::vector<Member>& members) {
  if (argument.starts_with('&')) argument.erase(0, 1);
  const std::string text = kernel_source::blank_comments(source.all);
  const auto list_in = [](const std::string& from, std::size_t at) {  // of {1, 2}, Grid{1, 2} and make_float2(1, 2)
    const std::size_t open = next_character(from, kernel_source::end_of_identifier(from, at));
    const bool made = from.compare(at, 5, "make_") == 0 && from.compare(open, 1, "(") == 0;
    return made                              ? list_at(from, open, ')')
           : from.compare(open, 1, "{") == 0 ? list_at(from, open, '}')
                                             : std::vector<std::string>();
  };
  std::vector<std::string> list = list_in(argument, 0);
  for (const std::size_t behind : ends_of(text, argument, source.launch.at)) {
    std::size_t next = next_character(text, behind);
    if (text.compare(next, 1, "=") == 0) next = next_character(text, next + 1);
    if (const auto given = list_in(text, next); !given.empty()) list = given;
  }
  std::vector<std::string> values;
  for (const Member& member : members) {
    const std::string path = argument + (member.declared.empty() ? "" : "." + member.declared) + member.place;
    std::string given;
    if (member.number < list.size() && !list[member.number].starts_with('.')) given = list[member.number];
    for (const std::string& one : list)
      if (const std::size_t equals = one.find('=');
          equals != std::string::npos && trimmed(one.substr(0, equals)) == "." + member.declared)
        given = trimmed(one.substr(equals + 1));
    if (member.element) {
      const std::vector<std::string> elements = member.declared.empty() ? list : list_in(given, 0);
      given = *member.element < elements.size() ? elements[*member.element] : std::string();
    }
    for (const std::size_t behind : ends_of(text, path, source.launch.at))
      if (const std::string set = initialiser_at(text, behind); !set.empty()) given = set;
    values.push_back(given.empty() ? path : given);
  }
  return values;
}

}  // namespace

void add_structures(const std::string& source, bool opencl, TypeNames& types) {
  for (const Definition& one : definitions_in(source)) {
    const auto size = size_of_structure(one, types, opencl);
    if (!size) continue;
    const std::string type = fmt::format("uint8[{}]", *size);
    if (!one.name.empty()) types[one.name] = types["struct " + one.name] = type;
    if (!one.alias.empty()) types[one.alias] = type;
  }
}

std::vector<Field> members_in_source(const std::string& source, bool opencl, const std::string& type,
                                     const std::vector<std::string>& macros) {
  TypeNames types = types_of(kernel_source::outline_of(source));
  for (const std::string& macro : macros) types.erase(macro);
  const std::vector<Definition> definitions = definitions_in(source);
  std::vector<Field> fields;
  std::string reason;
  if (const Definition* const found = structure_named(type, definitions))
    for (const Member& member : members_of(source, opencl, types, *found, reason)) {
      Field& field = fields.emplace_back();
      field.name = member.declared + member.place;
      field.type = *element_type(element_of(member.type)->type);
    }
  return fields;
}

void split_structures(DraftSource& source) {
  const TypeNames types = types_of(source.outline);
  const std::vector<Definition> definitions = definitions_in(source.all);
  for (std::size_t i = 0; i < source.parameters.size(); ++i) {
    const Parameter whole = source.parameters[i];
    if (whole.pointer || !std::ranges::all_of(whole.name, kernel_source::in_identifier)) continue;
    std::vector<Member> members;
    const std::string type = resolved(types, whole.type);
    if (const auto element = element_of(type)) {
      if (element->width > 1) add_member(type, *element, source.language.key == "opencl", {}, members);
    } else {
      std::string reason;
      if (const Definition* const found = structure_named(whole.type, definitions))
        members = members_of(source.all, source.language.key == "opencl", types, *found, reason);
      if (!reason.empty()) source.unread_structures[whole.name] = reason;
    }
    if (members.empty()) continue;
    std::vector<std::string>& arguments = source.launch.arguments;
    if (i < arguments.size()) {
      const std::vector<std::string> values = values_of(source, arguments[i], members);
      const auto place = arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      arguments.insert(place, values.begin(), values.end());
    }
    source.structures.push_back({whole.name, whole.type, i, {}});
    std::vector<Parameter> parameters;
    for (const Member& member : members) {
      source.structures.back().members.push_back(member.name());
      parameters.push_back({member.type, whole.name + "_" + member.name()});
      std::string pattern = "\\b" + whole.name + (member.declared.empty() ? "" : "\\s?\\.\\s?" + member.declared);
      for (const char c : member.place)
        pattern += kernel_source::in_identifier(c) ? std::string(1, c) : fmt::format("\\s?\\{}\\s?", c);
      if (!pattern.ends_with("s?")) pattern += "\\b";
      source.kernel.body = std::regex_replace(source.kernel.body, std::regex(pattern), parameters.back().name);
    }
    const auto place = source.parameters.erase(source.parameters.begin() + static_cast<std::ptrdiff_t>(i));
    source.parameters.insert(place, parameters.begin(), parameters.end());
    i += parameters.size() - 1;
  }
  if (!source.structures.empty()) source.use = KernelUse(source.kernel.body);
}

}  // namespace ergotune::draft
