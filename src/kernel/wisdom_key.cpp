#include "kernel/wisdom_key.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>

#include "base/hash.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "problem/files/includes.hpp"
#include "problem/files/source_text.hpp"
#include "problem/tables/device_profile.hpp"
#include "space/expression/expression_tokens.hpp"

namespace ergotune {
namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())) &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Adds all identifiers in a text that could be names of macros.
void add_words(std::string_view text, std::set<std::string, std::less<>>& words) {
  for (std::size_t i = 0; i < text.size();) {
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (!is_part(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_part(text[end])) ++end;
    words.emplace(text.substr(i, end - i));
    i = end;
  }
}

/// Parts of a hash, each preceded by its length, so that different lists of parts have different texts.
class Parts {
 public:
  void add(std::string_view part) {
    text_ += fmt::format("{}:{}", part.size(), part);
    parts_.emplace_back(text_.size() - part.size(), part.size());
  }
  template <class T>
  void add_all(const char* what, const std::vector<T>& expressions) {
    add(what);
    for (const T& expression : expressions) add(expression.to_string());
  }
  std::string hash() const { return content_hash(text_); }
  const std::string& text() const { return text_; }
  /// Returns the identifiers of all parts. (Those of text() would differ, since each part is followed by the length of
  /// the next.)
  std::set<std::string, std::less<>> words() const {
    std::set<std::string, std::less<>> words;
    for (const auto& [begin, size] : parts_) add_words(std::string_view(text_).substr(begin, size), words);
    return words;
  }

 private:
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> parts_;  ///< begin and size of each part in the text
};

void add_source(const KernelSource& source, const std::vector<std::string>& options, Parts& parts) {
  const auto plain = [&](const std::string& text) {
    return source.language == Language::fortran ? text : without_comments(text);
  };
  parts.add(to_string(source.language));
  parts.add(plain(source.text));
  std::vector<std::string> folders;
  for (const auto& folder : include_folders_of(source)) folders.push_back(folder.string());
  for (const auto& [name, text, path] : files_in_use(source.text, std::move(folders), options)) {
    parts.add(name);
    parts.add(plain(text));
  }
}

/// Returns source, function and options as parts.
Parts parts_of_source(const Kernel& kernel, const std::string& backend) {
  const KernelSource& source = source_for_device(kernel, backend);
  std::vector<std::string> options;
  for (const std::string& group : {std::string(), to_string(source.language)}) {
    const auto found = kernel.options.find(group);
    if (found == kernel.options.end()) continue;
    for (const Template& option : found->second) options.push_back(option.text());
  }
  Parts parts;
  add_source(source, options, parts);
  parts.add(kernel.function.text());
  for (const std::string& option : options) parts.add(option);
  return parts;
}

/// Returns parts_of_source() and the types of arguments and the launch.
Parts parts_of_code(const Problem& problem, const Kernel& kernel, const std::string& backend) {
  Parts parts = parts_of_source(kernel, backend);
  parts.add("arguments");
  for (const Argument& argument : arguments_of(problem, kernel)) {
    parts.add(fmt::format("{} {} {}", static_cast<int>(argument.kind), to_string(argument.type), argument.type_name));
    if (argument.when) parts.add(argument.when->to_string());
  }
  parts.add_all("grid", kernel.launch.grid);
  parts.add_all("global", kernel.launch.global);
  parts.add_all("block", kernel.launch.block);
  parts.add(kernel.launch.shared_memory_bytes.to_string());
  return parts;
}

std::string vendor_of(const std::string& name, const std::string& backend, const Constants& properties) {
  const std::string text = lower(name);
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (backend == "cuda") return "nvidia";
  if (backend == "hip") return "amd";
  const auto warp = properties.find("device.warp_size");
  const bool processor = backend == "host" || has("cpu") || has("epyc") || has("xeon") || has("ryzen") ||
                         (warp != properties.end() && warp->second == Value(1));
  std::string vendor;
  if (has("nvidia") || has("geforce") || has("tesla") || has("quadro"))
    vendor = "nvidia";
  else if (has("amd") || has("radeon") || has("instinct") || has("gfx") || has("epyc") || has("ryzen"))
    vendor = "amd";
  else if (has("intel") || has("xeon"))
    vendor = "intel";
  else if (has("mali") || has("arm") || has("neoverse") || has("cortex"))
    vendor = "arm";
  if (processor) return vendor.empty() ? "cpu" : vendor + " cpu";
  return vendor;
}

const DeviceProfile* profile_of(const std::string& name) {
  static const std::vector<DeviceProfile> profiles = [] {
    std::vector<DeviceProfile> all;
    for (const std::string& profile : device_profile_names()) all.push_back(load_device_profile(profile));
    return all;
  }();
  for (const DeviceProfile& profile : profiles)
    if (profile.name == name) return &profile;
  return nullptr;
}

std::int64_t number_in(const Constants& properties, const char* name) {
  const auto found = properties.find(name);
  return found != properties.end() && found->second.is_integer() ? found->second.as_integer() : 0;
}

}  // namespace

std::string wisdom_name(const Problem& problem, const Kernel& kernel) {
  if (!kernel.name.empty()) return kernel.name;
  const std::string function = kernel.function.text();
  return is_identifier(function) ? function : problem.name;
}

std::vector<std::string> size_names(const Problem& problem, const Kernel& kernel) {
  std::vector<std::string> names;
  const auto add = [&](const Expression& expression) {
    // in the order in which they occur in the text, so that the order of rows and columns does not depend on their
    // names
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const std::string& name : expression.names()) found.emplace_back(expression.to_string().find(name), name);
    std::ranges::sort(found);
    for (const auto& [at, name] : found) {
      const auto constant = problem.constants.find(name);
      if (constant == problem.constants.end() || !constant->second.is_integer() || name.find('.') != std::string::npos)
        continue;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  };
  for (const auto& dimension : {kernel.launch.grid, kernel.launch.global}) std::ranges::for_each(dimension, add);
  const auto& arguments = arguments_of(problem, kernel);
  for (const Argument& argument : arguments)
    if (argument.kind == Argument::Kind::buffer) add(argument.count);
  for (const auto& [position, name] : bound_constants(problem, kernel)) add(arguments[position].value);
  return names;
}

std::vector<std::int64_t> problem_size(const Problem& problem, const Kernel& kernel, const Constants& constants) {
  std::vector<std::int64_t> sizes;
  for (const std::string& name : size_names(problem, kernel)) sizes.push_back(number_in(constants, name.c_str()));
  if (!sizes.empty()) return sizes;
  for (const Expression& items : kernel.launch.global) {
    const Value value = items.names().empty() ? items.evaluate(Constants{}) : Value("");
    if (!value.is_integer()) return {};
    sizes.push_back(value.as_integer());
  }
  return sizes;
}

std::map<std::size_t, std::string> bound_constants(const Problem& problem, const Kernel& kernel) {
  std::map<std::size_t, std::string> bound;
  const auto& arguments = arguments_of(problem, kernel);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.kind != Argument::Kind::scalar || !argument.fields.empty() || argument.type == ElementType::float16)
      continue;
    const std::string name = argument.value.to_string();
    if (problem.constants.contains(name)) bound.emplace(i, name);
  }
  return bound;
}

std::string source_backend(const Kernel& kernel, const std::string& backend) {
  const auto& all = device::backends();
  if (std::ranges::any_of(all, [&](const auto& each) { return each.name == backend; }))
    return has_source_for(kernel, backend) ? backend : std::string();
  for (const auto& each : all)
    if (has_source_for(kernel, each.name)) return std::string(each.name);
  return {};
}

std::set<std::string, std::less<>> code_description(const Kernel& kernel, const std::string& backend) {
  return parts_of_source(kernel, backend).words();
}

std::set<std::string, std::less<>> launch_names(const Problem& problem, const Kernel& kernel) {
  std::set<std::string, std::less<>> names;
  const auto add = [&](const Expression& expression) {
    names.insert(expression.names().begin(), expression.names().end());
  };
  for (const auto& sizes : {kernel.launch.grid, kernel.launch.global, kernel.launch.block})
    std::ranges::for_each(sizes, add);
  add(kernel.launch.shared_memory_bytes);
  for (const Argument& argument : arguments_of(problem, kernel)) {
    if (argument.kind == Argument::Kind::local_memory) add(argument.count);
    if (argument.when) add(*argument.when);
  }
  return names;
}

std::string source_hash(const Problem& problem, const Kernel& kernel, const std::string& backend,
                        const Constants& constants) {
  Parts parts = parts_of_code(problem, kernel, backend);
  // Constants that do not occur in the parts (such as those used by metrics only) have no effect.
  std::set<std::string, std::less<>> words;
  add_words(parts.text(), words);
  for (const std::string& name : size_names(problem, kernel)) words.erase(name);
  for (const auto& [position, name] : bound_constants(problem, kernel)) words.erase(name);
  for (const auto& [name, value] : constants)
    if (name.find('.') == std::string::npos && words.contains(name)) parts.add(name + "=" + value.to_literal());
  return parts.hash();
}

std::string space_hash(const Problem& problem) {
  Parts parts;
  for (const Parameter& parameter : problem.parameters) {
    parts.add(parameter.name);
    for (const Value& value : parameter.values) parts.add(value.to_literal());
    if (parameter.range)
      for (const Expression& bound : {parameter.range->start, parameter.range->stop, parameter.range->step})
        parts.add(bound.to_string());
  }
  std::set<std::string> conditions;
  for (const Restriction& restriction : problem.restrictions)
    conditions.insert(restriction.function ? restriction.label() : restriction.expression.to_string());
  for (const std::string& condition : conditions) parts.add(condition);
  return parts.hash();
}

Configuration wisdom_configuration(const Problem& problem, const Constants& constants, const WisdomRecord& record) {
  Configuration values = default_values(problem);
  std::size_t known = 0;
  for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const auto found = record.configuration.find(parameter.name);
    if (found == record.configuration.end()) continue;
    ++known;
    const auto& allowed = parameter.values;
    if (!allowed.empty() && std::ranges::find(allowed, found->second) == allowed.end())
      throw UserError(fmt::format("{} has no value {}", parameter.name, found->second.to_literal()));
    values[i] = found->second;
  }
  if (known < record.configuration.size()) {
    for (const auto& [name, value] : record.configuration) {
      const auto is_it = [&wanted = name](const Parameter& parameter) { return parameter.name == wanted; };
      if (std::ranges::none_of(problem.parameters, is_it))
        throw UserError(fmt::format("there is no parameter \"{}\"", name));
    }
  }
  const ConfigurationScope names(problem.parameters, values, constants);
  const Scope scope = names.scope();
  for (const Restriction& restriction : problem.restrictions) {
    const bool met = restriction.function ? restriction.function(scope) : restriction.expression.evaluate_bool(scope);
    if (!met) throw UserError(fmt::format("it does not meet \"{}\"", excerpt(restriction.label())));
  }
  return values;
}

Configuration launchable_configuration(const Problem& problem, const Kernel& kernel, const Constants& constants,
                                       const WisdomRecord& record) {
  Configuration values = wisdom_configuration(problem, constants, record);
  const ConfigurationScope names(problem.parameters, values, constants, kernel.name);
  const LaunchGeometry geometry = make_geometry(kernel.launch, names.scope());
  const auto threads = std::int64_t{geometry.block[0]} * geometry.block[1] * geometry.block[2];
  const std::int64_t most = number_in(constants, "device.max_threads_per_block");
  if (most > 0 && threads > most)
    throw UserError(fmt::format("a block of {} threads, and this device takes {}", threads, most));
  return values;
}

Configuration default_configuration(const Problem& problem, const Constants& constants) {
  try {
    return wisdom_configuration(problem, constants, {});
  } catch (const UserError&) {
    const SearchSpace space = problem.build_space(constants);
    if (space.size() == 0)
      throw UserError(problem.name + ": no configuration meets the restrictions for this size on this device");
    return space.configuration(space.default_configuration().value_or(ConfigurationIndex{0}));
  }
}

Constants known_properties(const std::string& device) {
  const DeviceProfile* profile = profile_of(device);
  return profile ? profile->properties : Constants();
}

WisdomDevice wisdom_device(const std::string& name, const std::string& backend, const Constants& known) {
  const Constants properties = known.empty() ? known_properties(name) : known;
  WisdomDevice device;
  device.name = name;
  device.backend = backend;
  device.vendor = vendor_of(name, backend, properties);
  device.memory_bytes = number_in(properties, "device.global_memory_bytes");
  device.multiprocessors = number_in(properties, "device.multiprocessors");
  const std::int64_t capability = number_in(properties, "device.compute_capability");
  if (const auto named = properties.find("device.architecture");
      named != properties.end() && named->second.is_string()) {
    device.architecture = named->second.as_string();
  } else if (device.vendor.ends_with("cpu")) {
    utsname system{};
    if (!known.empty() && ::uname(&system) == 0) device.architecture = system.machine;
  } else if (capability > 0 && device.vendor == "nvidia") {
    device.architecture = fmt::format("sm_{}", capability);
  } else if (capability > 0) {
    device.architecture = fmt::format("{} {}", device.vendor, capability);
  }
  return device;
}

WisdomDevice wisdom_device(const DeviceInfo& info) {
  WisdomDevice device = wisdom_device(info.name, info.backend, info.properties);
  device.uuid = info.uuid;
  device.driver = info.driver_version;
  return device;
}

}  // namespace ergotune
