#include "problem/draft/draft_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <set>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::draft {
namespace {

/// Returns the numbers that the source compares a name with (`#if VEC == 4`). Where it uses the name otherwise, too:
/// with 1, or none if there is only one, whose other branch may work for many values.
std::set<long> compared_numbers(const DraftSource& source, const std::string& name) {
  std::set<long> numbers;
  std::size_t uses = 0;
  const std::string text = kernel_source::blank_comments(source.text);
  for (const std::size_t end : ends_of(text, name, text.size())) {
    const std::size_t line = text.rfind('\n', end - name.size()) + 1;
    const std::string before(trimmed(std::string_view(text).substr(line, end - name.size() - line)));
    if (before.starts_with("#") && (before.ends_with("define") || before.ends_with("def") || before.ends_with("undef")))
      continue;
    std::size_t next = next_character(text, end);
    std::optional<long> number;
    if (text.compare(next, 2, "==") == 0) {
      next = next_character(text, next + 2);
      number = whole_number(text.substr(next, kernel_source::end_of_identifier(text, next) - next));
    }
    if (number) numbers.insert(*number);
    uses += !number;
  }
  if (uses == 0) return numbers;
  if (numbers.size() < 2) return {};
  numbers.insert(1);  // the branch for all others
  return numbers;
}

/// Returns values worth trying for a macro or template parameter whose value in the source is `present`.
std::string values_of(const DraftSource& source, const std::string& name, long present) {
  const std::string text = upper(name);
  std::set<long> values = compared_numbers(source, name);
  const bool compared = !values.empty();
  values.insert(present);
  if (compared) {
    if (values.size() == 1) values.insert(present == 1 ? 0 : 1);  // for the other branch
  } else if (present == 0 || (present == 1 && contains(text, {"USE", "ENABLE", "WITH"}))) {
    values = {0, 1};
  } else if (contains(text, {"UNROLL", "PER_THREAD", "WORK", "VECTOR", "VEC", "COARSEN"})) {
    values.insert({1, 2, 4, 8});
  } else {
    for (const long factor : {2, 4})
      if (present % factor == 0) values.insert(present / factor);
    values.insert({present * 2, present * 4});
  }
  return fmt::format("{{ values = [{}], default = {} }}", fmt::join(values, ", "), present);
}

bool changes_result(const std::string& name) {
  return contains(upper(name), {"RADIUS", "ORDER", "STENCIL", "HALO", "ITER", "BINS"});
}

/// True for N, WIDTH, NUM_ROWS; false for TILE_SIZE.
bool is_size_name(const std::string& text) {
  static const std::set<std::string> kNames{"N",    "M",    "K",    "NX",    "NY",     "NZ",     "W",     "H",
                                            "ROWS", "COLS", "SIZE", "WIDTH", "HEIGHT", "LENGTH", "DEPTH", "COUNT"};
  return kNames.contains(text) || ((text.starts_with("NUM_") || text.starts_with("N_") || text.starts_with("SIZE_") ||
                                    contains(text, {"WIDTH", "HEIGHT", "LENGTH"})) &&
                                   !contains(text, {"TILE", "BLOCK", "PER_", "THREAD"}));
}

/// True if the kernel computes positions from blocks of this size.
bool is_block(const KernelUse& use, const std::string& name) {
  const std::vector<std::string> shared = use.shared_memory_dimensions();
  return std::ranges::find(shared, name) != shared.end() || use.position(0).block == name ||
         use.position(1).block == name;
}

/// True for "get_global_id(1) * ROWS": the work of a thread.
bool is_factor(const KernelUse& use, const std::string& name) {
  return use.position(0).factor == name || use.position(1).factor == name || use.position(2).factor == name;
}

/// Template parameters become parameters of the problem.
void read_template(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  const std::string& head = source.kernel.head;
  const std::size_t open = head.find('<');
  if (!head.starts_with("template") || open == std::string::npos) return;
  const std::vector<std::string>& launched = source.launch.template_arguments;
  std::vector<std::string> values;
  for (const auto& parameter :
       kernel_source::parameters_of(std::string_view(head).substr(open + 1, head.find('>', open) - open - 1), true)) {
    const std::string given = values.size() < launched.size() ? launched[values.size()] : std::string();
    if (parameter.type == "typename" || parameter.type == "class") {
      const bool known = element_of(given).has_value();
      values.push_back(names.types[parameter.name] = known ? given : "float");
      if (!known)
        guesses.ask(
            fmt::format("the template parameter {} is float: change it in function and arguments for another type",
                        parameter.name));
      continue;
    }
    if (names.allocated.contains(parameter.name)) {
      const std::string size = names.macro_name(parameter.name, "_VALUE");
      names.sizes.emplace_back(parameter.name, size);
      names.given[parameter.name] = source.value(given).value_or(16);
      values.push_back("{{" + size + "}}");
      if (!whole_number(given)) names.launched[given] = size;
      continue;
    }
    const bool number = parameter.type == "auto" || element_of(resolved(names.types, parameter.type));
    const std::string list =
        parameter.type == "bool"
            ? fmt::format("{{ values = [\"false\", \"true\"], default = \"{}\" }}", given == "true")
        : !number && !given.empty() && !source.value(given)  // of an enumeration
            ? fmt::format("[\"{}\"]", given)
            : values_of(source, parameter.name, source.value(given).value_or(16));
    // a different name, because parameters are macros
    const std::string name = names.template_parameters[parameter.name] = names.macro_name(parameter.name, "_VALUE");
    const bool read = parameter.type == "bool" || given.empty() || source.value(given);
    names.add_parameter(
        name,
        list + guesses.check(fmt::format("values of the template parameter {}, which a macro {} would replace in the "
                                         "source: where they change the result, leave one",
                                         parameter.name, parameter.name) +
                                 (read ? std::string()
                                       : fmt::format("; the {} of {} was not understood", given, source.launch_file())),
                             name));
    names.tunable.insert(parameter.name);
    values.push_back("{{" + name + "}}");
    if (source.value(given).value_or(1) == 1 || std::ranges::count(launched, given) != 1) continue;
    names.launched[given] = name;
    for (const std::string& other : source_aliases(source.all, given, source.launch.at))
      names.launched.emplace(other, name);
  }
  names.function += fmt::format("<{}>", fmt::join(values, ", "));
}

/// Returns the macros of the source, and those of its headers that a value given to the compiler replaces.
std::vector<kernel_source::Macro> macros_of(const DraftSource& source) {
  std::vector<kernel_source::Macro> macros = source.outline.macros;
  for (const IncludedFile& header : included_files(source.text, source.header_folders))
    for (const kernel_source::Macro& macro : kernel_source::outline_of(header.text).macros)
      if (macro.guarded && std::ranges::count(macros, macro.name, &kernel_source::Macro::name) == 0)
        macros.push_back(macro);
  return macros;
}

/// `constexpr int TX = 16, TY = 16;` outside of functions: fixed, as a macro without a guard is.
void read_named_constants(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  static const std::regex kDeclaration(
      R"(\b(?:constexpr|const)\s+(?:static\s+)?(?:(?:unsigned|signed|long|short|int|size_t|auto|u?int\d+_t)\s+)+([^;(){}]{1,300});)");
  static const std::regex kOne(R"(\s*(\w+)\s*=\s*(\w+)\s*)");
  const std::string text = one_blank(source.outline.outside);
  for (std::sregex_iterator it(text.begin(), text.end(), kDeclaration), end; it != end; ++it)
    for (const std::string& part : parts_of((*it)[1].str(), ",")) {
      std::smatch match;
      if (!std::regex_match(part, match, kOne)) continue;
      const std::string name = match[1].str();
      const auto value = whole_number(match[2].str());
      if (!value || !names.used.contains(name) || !names.fixed.emplace(name, *value).second) continue;
      if (!changes_result(name))
        guesses.ask(
            fmt::format("{}: {} is fixed at {}. To tune it, write \"#ifndef {}\", \"#define {} {}\" and "
                        "\"#endif\" instead, and run init again",
                        source.file.string(), name, *value, name, name, *value));
    }
}

void read_macros(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  for (const kernel_source::Macro& macro : macros_of(source)) {
    auto value = whole_number(macro.value);
    if (const std::string given = source.built_with(macro.name); macro.guarded && !given.empty())
      value = source.value(given);
    if (macro.takes_arguments || !value || !names.used.contains(macro.name)) continue;
    if (!macro.guarded) {
      names.fixed[macro.name] = *value;
      guesses.ask(
          fmt::format("{}: {} is fixed at {}. To tune it, write \"#ifndef {}\" before and \"#endif\" after this "
                      "line, and run init again",
                      source.place(macro.line), macro.name, *value, macro.name));
    } else if (names.allocated.contains(macro.name) ||
               (is_size_name(macro.name) && source.use.is_extent(macro.name) && !is_block(source.use, macro.name) &&
                !is_factor(source.use, macro.name) && !source.use.is_step(macro.name))) {
      names.sizes.emplace_back(macro.name, macro.name);
      names.guarded.insert(macro.name);
      names.given[macro.name] = *value;
    } else if (changes_result(macro.name)) {
      names.constants.emplace_back(
          macro.name, std::to_string(*value) + guesses.check("its value seems to change the result", macro.name));
    } else {
      names.add_parameter(macro.name,
                          values_of(source, macro.name, *value) +
                              guesses.check("the values worth trying; where they change the result, leave one" +
                                                source.unread_value(macro.name),
                                            macro.name));
    }
  }
}

/// Returns the first value that a loop around the launch passes for a parameter of the kernel.
std::string value_in_loop(const DraftSource& source, const std::string& parameter, const std::string& constant,
                          Guesses& guesses) {
  const std::string launched = source.launched_number(parameter);
  return (whole_number(launched) ? launched : "1") + guesses.check(source.changing_value(parameter), constant);
}

void read_scalar(const DraftSource& source, const kernel_source::Parameter& parameter, ProblemNames& names,
                 Guesses& guesses) {
  const std::string type = resolved(names.types, parameter.type);
  const auto element = element_of(type);
  if (!element || type.starts_with("uint8[") ||
      !(element->type.starts_with("int") || element->type.starts_with("uint")))
    return;
  const bool absent = !kernel_source::identifiers_in(source.kernel.body).contains(parameter.name);
  if (source.use.is_extent(parameter.name) || absent) {
    const std::string constant = names.add_size(parameter.name);
    if (absent) names.unbound.push_back(constant);
    return;
  }
  const std::string constant = names.scalars[parameter.name] = names.macro_name(parameter.name, "_VALUE");
  const std::string launched = source.launched_number(parameter.name);
  names.constants.emplace_back(constant, !source.changing_value(parameter.name).empty()
                                             ? value_in_loop(source, parameter.name, constant, guesses)
                                         : whole_number(launched)
                                             ? launched + source.as_launched()
                                             : "1" + guesses.check("the value that the application passes", constant));
}

/// Sorts the names that the source expects from the compiler's command line.
void read_undefined(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  const std::vector<UndefinedName> found =
      undefined_names(source.text, source.header_folders, source.outline, source.used);
  std::vector<std::string> missing = missing_includes(source.text, source.header_folders);
  std::erase_if(missing, [](const std::string& header) {  // of a compiler or a toolkit, which define no parameters
    return header.starts_with("cuda") || header.starts_with("device_") || header.starts_with("hip/") ||
           header.starts_with("std") || header == "math.h" || header == "omp.h";
  });
  if (!missing.empty() && !found.empty()) {
    // a parameter would define the header's macro a second time
    std::vector<std::string> open;
    for (const UndefinedName& name : found) open.push_back(name.name);
    guesses.ask(fmt::format("{}: \"{}\" was not found, and may define {}: run init again with --include FOLDER --force",
                            source.file.string(), fmt::join(missing, "\", \""), fmt::join(open, ", ")));
    return;
  }
  for (const UndefinedName& name : found) {
    const std::string given = source.built_with(name.name);
    names.unread[name.name] = source.unread_value(name.name);
    const auto value = given.empty() ? std::nullopt : source.value(given);
    if (name.as_type) {
      names.types[name.name] = "float";
    } else if (!name.as_unroll && !name.as_schedule && !name.in_condition && !name.in_ifdef &&
               (names.allocated.contains(name.name) ||
                (is_size_name(name.name) && source.use.is_extent(name.name) && !is_factor(source.use, name.name) &&
                 !source.use.is_step(name.name)))) {
      names.sizes.emplace_back(name.name, name.name);
      if (value) names.given[name.name] = *value;
      continue;
    }
    if (value && !name.as_type && !name.in_ifdef && !name.in_condition)
      names.add_parameter(name.name, values_of(source, name.name, *value) +
                                         guesses.check("values around that of the application", name.name));
    names.undefined.push_back(name);
    if (!name.in_ifdef && !name.as_type) names.tunable.insert(name.name);
  }
}

/// Returns values for an undefined macro, and what it seems to be.
std::pair<const char*, const char*> proposal(const UndefinedName& name, bool for_host, bool is_factor) {
  const std::string text = upper(name.name);
  if (name.as_type) return {"[\"float\"]", "a type"};
  if (name.as_schedule) return {"[\"static\", \"dynamic\", \"guided\"]", "how a loop is divided"};
  if (name.in_condition) return {"[0, 1]", "a condition"};
  if (name.as_unroll || contains(text, {"UNROLL"})) return {"[1, 2, 4, 8]", "an unroll factor"};
  if (contains(text, {"PAD"})) return {"[0, 1]", "elements of padding"};
  if (contains(text, {"VEC"})) return {"[1, 2, 4]", "the width of a vector"};
  if (is_factor || contains(text, {"PER_", "WORK", "COARSEN", "ITEMS", "STEPS", "FACTOR"}))
    return {"[1, 2, 4, 8]", "work for each thread"};
  if (for_host && contains(text, {"THREAD"})) return {"[1, 2, 4, 8]", "threads"};
  if (contains(text, {"CHUNK"})) return {"{ values = [1, 4, 16, 64], default = 16 }", "a chunk"};
  if (text.size() == 2 && text[0] == 'B' && contains(text, {"M", "N", "K"}))  // matrix tiles
    return {"[16, 32, 64, 128]", "the size of a tile"};
  if (!contains(text, {"BLOCK", "TILE", "SIZE", "DIM", "THREADS", "GROUP"})) return {"[1, 2, 4]", "a parameter"};
  if (for_host) return {"{ values = [8, 16, 32, 64, 128], default = 32 }", "the size of a block"};
  return {"{ values = [4, 8, 16, 32], default = 16 }", "the size of a block or a tile"};
}

}  // namespace

std::string values_of_block(const std::vector<std::string>& blocks, std::size_t dimension,
                            const std::map<std::string, std::string>& tiles, std::optional<long> launched,
                            std::optional<long> most) {
  const std::string& name = blocks[dimension];
  const bool square = blocks.size() > 1 && std::set<std::string>(blocks.begin(), blocks.end()).size() < blocks.size();
  std::set<long> list;
  long standard = 16;
  if (launched && !tiles.contains(name)) {
    standard = *launched;
    for (long size = dimension == 0 ? 8 : 1; size <= (blocks.size() == 1 ? 1024 : dimension == 0 ? 128 : 16); size *= 2)
      list.insert(size);
  } else if (tiles.size() == 1 && tiles.begin()->second == name) {
    list = {16, 32, 64};
    standard = 32;
  } else if (tiles.contains(name)) {
    list = {1, 2, 4, 8, 16};
    standard = 8;
  } else if (blocks.size() == 1) {
    list = {32, 64, 128, 256, 512, 1024};
    standard = 256;
  } else if (square) {
    list = {4, 8, 16, 32};
  } else if (dimension == 0) {
    list = {8, 16, 32, 64, 128};
  } else {
    list = {1, 2, 4, 8, 16};
    standard = blocks.size() == 2 ? 16 : 4;
  }
  if (most) {
    standard = std::min(standard, *most);
    std::erase_if(list, [&](long size) { return size > *most; });
  }
  list.insert(standard);
  return fmt::format("{{ values = [{}], default = {} }}", fmt::join(list, ", "), standard);
}

/// Whether a macro only decides about a test program: `#ifdef MAIN` around `int main()`.
bool encloses_main(const std::string& text, const std::string& macro) {
  static const std::regex kMain(R"(\bint\s{1,9}main\s{0,9}\()");
  for (const std::size_t behind : ends_of(text, macro, text.size())) {
    const std::size_t line = text.rfind('\n', behind - 1) + 1;
    if (!trimmed(std::string_view(text).substr(line)).starts_with("#if")) continue;
    int depth = 0;
    std::size_t at = line;
    do {
      const std::string_view rest = trimmed(std::string_view(text).substr(at, 40));
      depth += rest.starts_with("#if") ? 1 : rest.starts_with("#endif") ? -1 : 0;
      at = text.find('\n', at) + 1;
    } while (depth > 0 && at != 0);
    const std::string region = text.substr(line, at == 0 ? at : at - line);
    if (std::regex_search(region, kMain)) return true;
  }
  return false;
}

std::vector<std::string> add_undefined(const DraftSource& source, const std::set<std::string>& factors,
                                       ProblemNames& names, Guesses& guesses) {
  std::vector<std::string> flags;
  for (const UndefinedName& name : names.undefined) {
    if (names.has_parameter(name.name)) continue;
    if (name.in_ifdef && encloses_main(kernel_source::blank_comments(source.all), name.name)) continue;
    if (name.in_ifdef) {
      const std::string& option = flags.emplace_back(name.name + "_OPTION");
      names.parameters.emplace_back(option,
                                    fmt::format("[\"-DNO_{0}\", \"-D{0}\"]", name.name) +
                                        guesses.check("the source only asks whether the macro is defined", option));
      continue;
    }
    const auto [values, what] = proposal(name, source.language.for_host, factors.contains(name.name));
    const std::set<long> compared = compared_numbers(source, name.name);
    names.parameters.emplace_back(
        name.name,
        (compared.size() > 1 ? fmt::format("[{}]", fmt::join(compared, ", ")) : values) +
            guesses.check(fmt::format("a macro that the source leaves open, perhaps {}: give values that work{}", what,
                                      names.unread[name.name]),
                          name.name));
  }
  return flags;
}

namespace {

/// Whether a buffer is larger than a gibibyte with this value of each size that the source does not give.
bool is_large(const ProblemNames& names, const std::string& bytes, long value) {
  constexpr double kGibibyte = 1073741824;
  std::map<std::string, Value, std::less<>> values;
  for (const std::string& name : names_in(bytes)) {
    const std::string* const size = names.source_of(name);
    if (!size) return false;
    values.emplace(name, Value(static_cast<double>(names.given.contains(*size) ? names.given.at(*size) : value)));
  }
  try {
    return Expression::parse(bytes).evaluate_real([&](std::string_view name) { return &values.find(name)->second; }) >
           kGibibyte;
  } catch (const UserError&) {  // it has no value as a real number
    return false;
  }
}

}  // namespace

void add_sizes(const DraftSource& source, const Geometry& geometry, const DraftArguments& arguments,
               ProblemNames& names, Guesses& guesses) {
  const bool plane = geometry.dimensions == 2 || names.is_plane(source.kernel.body);
  const bool long_loops = std::ranges::any_of(source.use.loop_counters(), [&](const std::string& counter) {
    return names.source_of(names.bound(source.use, counter, 2)) != nullptr;
  });
  constexpr long kPlane = 1024;
  long value = source.language.for_host   ? (plane ? 512 : 1048576)
               : geometry.dimensions == 3 ? 128
               : plane ? (source.language.key == "opencl" && long_loops ? 256 : kPlane)  // maybe a CPU
               : long_loops || !geometry.of_block.empty() ? 16384
                                                          : 4194304;
  for (std::size_t i = 0; i < std::min(source.parameters.size(), source.launch.arguments.size()); ++i)
    if (const auto launched = source.value(source.launch.arguments[i]).value_or(0); launched > 0)
      names.given[source.parameters[i].name] = launched;
  if (value > kPlane &&
      std::ranges::any_of(arguments.bytes, [&](const std::string& bytes) { return is_large(names, bytes, value); }))
    value = kPlane;
  const auto macros = macros_of(source);
  const auto is_launched = [&](const std::string& name) {
    return !source.built_with(name).empty() || std::ranges::count(macros, name, &kernel_source::Macro::name) == 0;
  };
  for (const auto& [name, constant] : names.sizes)
    names.constants.emplace_back(
        constant,
        !source.changing_value(name).empty() ? value_in_loop(source, name, constant, guesses)
        : names.given.contains(name)
            ? std::to_string(names.given.at(name)) +
                  (names.allocated.contains(name)
                       ? guesses.check("the value that the application uses; the sizes of buffers depend on it",
                                       constant)
                   : is_launched(name) ? source.as_launched()
                   : names.guarded.contains(name)
                       ? guesses.check("as in the source; if it is a choice, move it to [parameters]", constant)
                       : "  # as in the source")
            : std::to_string(value) +
                  guesses.check("the size that the application uses" + names.unread[name], constant));
}

void read_parameters(const DraftSource& source, ProblemNames& names, Guesses& guesses) {
  read_template(source, names, guesses);
  read_macros(source, names, guesses);
  read_named_constants(source, names, guesses);
  for (const auto& parameter : source.parameters)
    if (!parameter.pointer) read_scalar(source, parameter, names, guesses);
  read_undefined(source, names, guesses);
  names.substitute = names.sizes.empty();
  if (names.substitute) names.add_size("N");
}

}  // namespace ergotune::draft
