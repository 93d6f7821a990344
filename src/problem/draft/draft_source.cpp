#include "problem/draft/draft_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/opencl_launch.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::Function;

bool has_no_result(const Function& function) { return kernel_source::identifiers_in(function.head).contains("void"); }

bool is_kernel(const Function& function, const SourceLanguage& language) {
  const auto words = kernel_source::identifiers_in(function.head);
  if (language.for_host) return !words.contains("static") && function.name != "main";
  return std::ranges::any_of(language.marks, [&](const auto& mark) { return words.contains(mark); });
}

const Function& kernel_of(const kernel_source::Outline& outline, const SourceLanguage& language,
                          const std::string& wanted, const std::filesystem::path& file) {
  std::vector<const Function*> kernels;
  std::vector<std::string> names;
  // of functions for the CPU those that return nothing write to their arguments, as a kernel does
  const auto is_likely = [&](const Function& function) {
    return is_kernel(function, language) && has_no_result(function);
  };
  const bool void_only = std::ranges::any_of(outline.functions, is_likely);
  for (const Function& function : outline.functions) {
    if (!(void_only ? is_likely(function) : is_kernel(function, language)) && function.name != wanted) continue;
    kernels.push_back(&function);
    names.push_back(function.name);
  }
  const auto found = std::ranges::find(names, wanted);
  if (!wanted.empty() && found == names.end())
    throw UserError(fmt::format("{} has no kernel \"{}\"{}", file.string(), wanted,
                                names.empty() ? "" : suggestion(wanted, names)));
  if (!wanted.empty()) return *kernels[static_cast<std::size_t>(found - names.begin())];
  if (kernels.empty())
    throw UserError(fmt::format("{} has no {}", file.string(),
                                language.for_host ? "function that other files can call"
                                                  : fmt::format("function with {}", language.marks.front())));
  if (kernels.size() > 1)
    throw UserError(
        fmt::format("{} has several kernels: name one with --kernel: {}", file.string(), fmt::join(names, ", ")));
  return *kernels.front();
}

/// Returns a number of a source, such as "2.5f", as a problem file writes it; empty for other texts.
std::string literal(std::string text) {
  if (text.ends_with('f')) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

}  // namespace

TypeNames types_of(const kernel_source::Outline& outline) {
  static const std::regex kTypedef("typedef\\s+([A-Za-z_0-9 ]{1,60})\\s+([A-Za-z_0-9]{1,60})\\s*;");
  static const std::regex kUsing("using\\s+([A-Za-z_0-9]{1,60})\\s*=\\s*([A-Za-z_0-9 ]{1,60}?)\\s*;");
  TypeNames types;
  const std::string text = one_blank(outline.outside);
  for (std::sregex_iterator it(text.begin(), text.end(), kTypedef), end; it != end; ++it)
    types[(*it)[2].str()] = (*it)[1].str();
  for (std::sregex_iterator it(text.begin(), text.end(), kUsing), end; it != end; ++it)
    types[(*it)[1].str()] = (*it)[2].str();
  for (const kernel_source::Macro& macro : outline.macros)
    if (!macro.takes_arguments && element_of(macro.value)) types[macro.name] = macro.value;
  return types;
}

std::string resolved(const TypeNames& types, const std::string& type) {
  const auto known = types.find(type);
  return known == types.end() ? type : known->second;
}

std::optional<Element> element_of(const std::string& type) {
  std::string plain;
  for (const std::string& word : split(type, ' ')) {
    static const std::set<std::string> kQualifiers{"__global", "global",    "__constant", "constant", "__local",
                                                   "local",    "__private", "const",      ""};
    if (!kQualifiers.contains(word)) plain += (plain.empty() ? "" : " ") + word;
  }
  for (const char* prefix : {"std::", "cl_"})  // cl_float: of an OpenCL host
    if (plain.starts_with(prefix)) plain.erase(0, std::string_view(prefix).size());
  static const std::map<std::string, std::string> kNames{
      {"unsigned", "uint32"},       {"unsigned int", "uint32"},  {"signed int", "int32"},
      {"unsigned char", "uint8"},   {"signed char", "int8"},     {"bool", "uint8"},
      {"unsigned short", "uint16"}, {"unsigned long", "uint64"}, {"unsigned long long", "uint64"},
      {"long long", "int64"},       {"long", "int64"},           {"size_t", "uint64"},
      {"__half", "float16"},        {"half", "float16"},         {"int8_t", "int8"},
      {"int16_t", "int16"},         {"int32_t", "int32"},        {"int64_t", "int64"},
      {"uint8_t", "uint8"},         {"uint16_t", "uint16"},      {"uint32_t", "uint32"},
      {"uint64_t", "uint64"},       {"ptrdiff_t", "int64"}};
  if (const auto known = kNames.find(plain); known != kNames.end()) return Element{known->second, 1};
  if (const auto known = element_type(plain)) return Element{to_string(*known), 1};
  for (const int width : {16, 8, 4, 3, 2}) {
    const std::string digits = std::to_string(width);
    if (!plain.ends_with(digits)) continue;
    if (const auto known = element_type(plain.substr(0, plain.size() - digits.size())))
      return Element{to_string(*known), width};
  }
  return std::nullopt;
}

std::string with_sizes_of_types(const TypeNames& types, const std::string& expression) {
  static const std::regex kSizeof("sizeof\\s*\\(([A-Za-z_0-9 ]{1,60})\\)");
  std::string result;
  std::smatch match;
  std::string rest = one_blank(expression);
  while (std::regex_search(rest, match, kSizeof)) {
    const auto element = element_of(resolved(types, std::string(trimmed(match[1].str()))));
    result += match.prefix().str();
    result += element ? std::to_string(size_of(*element_type(element->type)) * static_cast<std::size_t>(element->width))
                      : match[0].str();
    rest = match.suffix().str();
  }
  return result + rest;
}

const SourceLanguage* known_language(const std::filesystem::path& file) {
  static const std::map<std::string, SourceLanguage> kLanguages{
      {".cu", {"cuda", false, {"__global__"}, "__CUDACC_RTC__"}},
      {".hip", {"hip", false, {"__global__"}, "__HIPCC_RTC__"}},
      {".cl", {"opencl", false, {"__kernel", "kernel"}, "__OPENCL_VERSION__"}},
      {".c", {"c", true, {}, ""}},
      {".cpp", {"cpp", true, {}, ""}},
      {".cc", {"cpp", true, {}, ""}},
      {".cxx", {"cpp", true, {}, ""}}};
  const auto found = kLanguages.find(file.extension().string());
  return found == kLanguages.end() ? nullptr : &found->second;
}

DraftSource read_draft_source(const std::string& text, const std::filesystem::path& file, const std::string& wanted,
                              const HostProgram& host, const std::vector<std::filesystem::path>& include_folders) {
  const SourceLanguage* const language = known_language(file);
  if (!language)
    throw UserError(
        fmt::format("{}: no first problem file can be written for this kind of source; it can be for .cu, .hip, "
                    ".cl, .c and .cpp (the page \"The problem file\" of the documentation describes the rest)",
                    file.string()));
  std::vector<std::string> folders{file.has_parent_path() ? file.parent_path().string() : "."};
  for (const auto& folder : include_folders) folders.push_back(folder.string());
  std::string headers;
  for (const IncludedFile& header : included_files(text, folders)) headers += header.text + "\n";
  const std::string all = headers + text + "\n" + (host.file.extension() == ".py" ? python_as_c(host.text) : host.text);
  const std::string compiled = kernel_source::source_with_macro(text, language->macro);
  const kernel_source::Outline outline = kernel_source::outline_of(compiled);
  const Function& kernel = kernel_of(outline, *language, wanted, file);
  const auto parameters = kernel_source::parameters_of(kernel.parameters, true);
  if (std::ranges::any_of(parameters, [](const auto& parameter) { return parameter.name.empty(); }))
    throw UserError(fmt::format("{}: a parameter of {} has no name", file.string(), kernel.name));
  return {file,
          host.file,
          folders,
          *language,
          all,
          compiled,
          outline,
          kernel,
          parameters,
          language->key == "opencl" ? opencl_launch(all, kernel.name) : source_launch(all, kernel.name),
          KernelUse(kernel.body),
          kernel_source::identifiers_of_kernel(headers + compiled, kernel.name)};
}

bool DraftSource::returns_void() const { return has_no_result(kernel); }

std::string DraftSource::launched_number(const std::string& parameter) const {
  const auto number = static_cast<std::size_t>(
      std::ranges::find(parameters, parameter, &kernel_source::Parameter::name) - parameters.begin());
  if (number >= launch.arguments.size()) return {};
  const std::string& argument = launch.arguments[number];
  if (const auto whole = value(argument)) return std::to_string(*whole);
  std::string found = literal(argument);
  const std::string plain = kernel_source::blank_comments(all);
  for (const std::size_t behind : ends_of(plain, argument, launch.at)) {  // the last value before the launch
    const std::size_t next = next_character(plain, behind);
    if (next >= plain.size() || plain[next] != '=') continue;
    const std::string assigned = plain.substr(next + 1, plain.find(';', next) - next - 1);
    if (const std::string given = literal(parts_of(assigned, ",").front()); !given.empty()) found = given;
  }
  return found;
}

std::string host_code_in(const DraftSource& source) {
  if (!source.language.macro.ends_with("_RTC__")) return {};  // NVRTC and hipRTC compile device code only
  for (const Function& function : source.outline.functions) {
    const auto words = kernel_source::identifiers_in(function.head);
    if (words.contains("__global__") || words.contains("__device__")) continue;
    return fmt::format(
        "{}:{}: {}() is host code, which run-time compilation refuses: enclose it (and the headers that it "
        "needs) in \"#ifndef {}\" and \"#endif\", or move the kernel to a separate file",
        source.file.string(), function.line, function.name, source.language.macro);
  }
  static const std::regex kHostHeader(
      "#\\s*include\\s*<(iostream|vector|string|chrono|random|fstream|memory|iomanip|algorithm|sys/"
      "time\\.h|time\\.h)>");
  // what ergotune gives NVRTC (device/cuda/c_headers.hpp), and hipRTC lacks
  static const std::regex kOfC("#\\s*include\\s*<(cstdio|cstdlib|stdio\\.h|stdlib\\.h)>");
  std::smatch header;
  const std::string text = one_blank(kernel_source::blank_comments(source.text));
  if (!std::regex_search(text, header, kHostHeader) &&
      (source.language.key == "cuda" || !std::regex_search(text, header, kOfC)))
    return {};
  return fmt::format(
      "{}: <{}> is a header of the host, which run-time compilation does not find: enclose it in "
      "\"#ifndef {}\" and \"#endif\"",
      source.file.string(), header[1].str(), source.language.macro);
}

}  // namespace ergotune::draft
