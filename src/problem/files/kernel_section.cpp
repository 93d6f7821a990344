// [kernel] and [verification].
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "problem/checks.hpp"
#include "problem/files/toml_sections.hpp"

namespace ergotune::toml_reading {

namespace {

const std::vector<std::string> kLanguageNames{"cuda", "opencl", "hip", "c", "cpp", "fortran"};

bool on_host(Language language) { return language >= Language::c; }

Language language_named(const std::string& name, const SourcePlace& place) {
  for (std::size_t i = 0; i < kLanguageNames.size(); ++i) {
    if (kLanguageNames[i] == name) return static_cast<Language>(i);
  }
  const bool cpp = name == "c++" || name == "cxx";
  throw UserError(fmt::format("unknown language \"{}\"{}", name, suggestion(cpp ? "cpp." : name, kLanguageNames)),
                  place);
}

Language language_of_file(const std::filesystem::path& file, const SourcePlace& place) {
  static const std::map<std::string, Language> kEndings{
      {".cubin", Language::cuda}, {".ptx", Language::cuda},    {".fatbin", Language::cuda}, {".cu", Language::cuda},
      {".cl", Language::opencl},  {".hip", Language::hip},     {".c", Language::c},         {".cpp", Language::cpp},
      {".cc", Language::cpp},     {".cxx", Language::cpp},     {".f90", Language::fortran}, {".F90", Language::fortran},
      {".f", Language::fortran},  {".f03", Language::fortran}, {".f08", Language::fortran}};
  const auto found = kEndings.find(file.extension().string());
  if (found != kEndings.end()) return found->second;
  throw UserError(fmt::format("the ending of \"{}\" names no language; say it: source = {{ opencl = \"{}\" }}",
                              file.string(), file.string()),
                  place);
}

void add_include_folder(KernelSource& source, const std::filesystem::path& folder) {
  const auto absolute = std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
  auto& folders = source.include_folders;
  if (std::find(folders.begin(), folders.end(), absolute) == folders.end()) folders.push_back(absolute);
}

KernelSource source_from_file(const std::string& name, std::optional<Language> language,
                              const std::filesystem::path& folder, const SourcePlace& place) {
  KernelSource source;
  source.file = (folder / name).lexically_normal();
  source.language = language ? *language : language_of_file(source.file, place);
  source.text = read_text_file(source.file, "kernel source", place);
  source.file = std::filesystem::absolute(source.file);
  add_include_folder(source, source.file.parent_path());
  return source;
}

KernelSource read_source(const Table& parent, const Entry& entry, const std::filesystem::path& folder) {
  const Language language = language_named(entry.key, entry.place);
  if (entry.node->is_string()) {
    return source_from_file(*entry.node->value<std::string>(), language, folder, parent.place_of(*entry.node));
  }
  const Table table = parent.table(entry);
  table.allow({"file", "text"});
  table.at_most_one_of({"file", "text"});
  if (const auto text = table.optional_text("text")) {
    KernelSource source;
    source.language = language;
    source.text = *text;
    add_include_folder(source, folder);
    return source;
  }
  const std::string file = table.text("file", "the source file (or \"text\": the source itself)");
  return source_from_file(file, language, folder, table.place_of(*table.find("file")));
}

std::vector<KernelSource> read_sources(const Table& kernel, const std::filesystem::path& folder) {
  const toml::node& node =
      kernel.require("source", "a file such as \"gemm.cl\", or a table by language: { opencl = \"gemm.cl\" }");
  std::vector<KernelSource> sources;
  if (const toml::table* by_language = node.as_table()) {
    const Table table = kernel.table({"source", by_language, kernel.key_place("source")});
    for (const Entry& entry : table.entries()) sources.push_back(read_source(table, entry, folder));
  } else if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) {
      sources.push_back(
          source_from_file(kernel.text_of(item, "a source"), std::nullopt, folder, kernel.place_of(item)));
    }
  } else {
    sources.push_back(source_from_file(kernel.text_of(node, fmt::format("\"source\" in {}", kernel.title())),
                                       std::nullopt, folder, kernel.place_of(node)));
  }
  if (sources.empty()) throw UserError(fmt::format("{} has no source", kernel.title()), kernel.place_of(node));
  const auto extra = kernel.optional_texts("include_folders");
  for (KernelSource& source : sources) {
    for (const std::string& path : extra) add_include_folder(source, folder / path);
  }
  return sources;
}

std::vector<Expression> read_dimensions(const Table& table, const char* key) {
  std::vector<Expression> result;
  const toml::node* node = table.find(key);
  if (!node) return result;
  const std::string what = fmt::format("\"{}\" in {}", key, table.title());
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& item : *list) result.push_back(table.expression_of(item, "a dimension of " + what));
  } else {
    result.push_back(table.expression_of(*node, what));
  }
  if (result.empty() || result.size() > 3) {
    throw UserError(fmt::format("{} has {} dimensions; a launch has one to three", what, result.size()),
                    table.place_of(*node));
  }
  return result;
}

Launch read_launch(const Table& table) {
  table.allow({"grid", "global", "block", "shared_memory_bytes"});
  table.at_most_one_of({"grid", "global"});
  Launch launch;
  launch.grid = read_dimensions(table, "grid");
  launch.global = read_dimensions(table, "global");
  launch.block = read_dimensions(table, "block");
  if (const toml::node* bytes = table.find("shared_memory_bytes")) {
    launch.shared_memory_bytes = table.expression_of(*bytes, "\"shared_memory_bytes\"");
  }
  return launch;
}

void check_launch(const Kernel& kernel, const Table& table) {
  const bool device_code = std::any_of(kernel.sources.begin(), kernel.sources.end(),
                                       [](const KernelSource& source) { return !on_host(source.language); });
  if (!device_code) return;  // a host function loops by itself
  const SourcePlace place = table.has("launch") ? table.key_place("launch") : table.place();
  if (kernel.launch.grid.empty() && kernel.launch.global.empty()) {
    throw UserError(
        fmt::format("{} needs \"launch.grid\" (blocks, as CUDA counts) or \"launch.global\" (work items, as "
                    "OpenCL counts)",
                    table.title()),
        place);
  }
  if (kernel.launch.block.empty()) {
    throw UserError(
        fmt::format("{} needs \"launch.block\": threads per block, such as [\"block_size_x\", 1]", table.title()),
        place);
  }
}

std::vector<Template> read_templates(const Table& table, const toml::node& node, const std::string& what) {
  std::vector<Template> result;
  const auto add = [&](const toml::node& item) {
    result.push_back(Template::parse(table.text_of(item, what), table.inside(item)));
  };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) add(item);
  } else {
    add(node);
  }
  return result;
}

std::map<std::string, std::vector<Template>> read_options(const Table& kernel,
                                                          const std::vector<KernelSource>& sources) {
  std::map<std::string, std::vector<Template>> options;
  const toml::node* node = kernel.find("options");
  if (!node) return options;
  if (!node->is_table()) {
    options[""] = read_templates(kernel, *node, "a compiler option");
    return options;
  }
  const Table table = kernel.table({"options", node, kernel.key_place("options")});
  const auto used = [&](const Entry& entry) {
    return std::any_of(sources.begin(), sources.end(), [&](const KernelSource& source) {
      return to_string(source.language) == entry.key || (source.language == Language::cuda && entry.key == "hip");
    });
  };
  const auto entries = table.entries();
  const bool any_used = std::any_of(entries.begin(), entries.end(), used);
  for (const Entry& entry : entries) {
    // Options for further devices may stand beside those of this one; host languages are taken for each other.
    const bool meant =
        entry.key == "all" || used(entry) || (!on_host(language_named(entry.key, entry.place)) && any_used);
    if (!meant && !sources.empty())
      throw UserError(fmt::format("{} has options for {}, and its source is in {}: they would be used for nothing",
                                  kernel.title(), entry.key, to_string(sources.front().language)),
                      entry.place);
    options[entry.key == "all" ? "" : entry.key] = read_templates(table, *entry.node, "a compiler option");
  }
  return options;
}

double tolerance(const Table& table, const char* key, double otherwise) {
  const auto value = table.optional_number(key);
  if (!value) return otherwise;
  if (!(*value >= 0)) throw UserError(fmt::format("\"{}\" must not be negative", key), table.key_place(key));
  return *value;
}

std::vector<std::string> outputs_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) {
    for (const Argument& argument : kernel.arguments) {
      if (argument.kind == Argument::Kind::buffer && argument.access != Access::read) names.push_back(argument.name);
    }
  }
  return names;
}

void read_outputs(const Table& table, const std::vector<Kernel>& kernels, Verification& verification) {
  verification.outputs = table.optional_texts("outputs");
  const std::vector<std::string> known = outputs_of(kernels);
  for (const std::string& name : verification.outputs) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UserError(fmt::format("\"{}\" is no output of {}{}", name, kernels.size() > 1 ? "the kernels" : "the kernel",
                                suggestion(name, known)),
                    table.key_place("outputs"));
  }
}

/// The table's entries, which name what the kernels write.
std::vector<Entry> output_entries(const Table& table, const std::vector<Kernel>& kernels) {
  const std::vector<std::string> buffers = outputs_of(kernels);
  for (const Entry& entry : table.entries()) {
    if (std::find(buffers.begin(), buffers.end(), entry.key) == buffers.end()) {
      throw UserError(fmt::format("\"{}\" is no output of the kernel{}", entry.key, suggestion(entry.key, buffers)),
                      entry.place);
    }
  }
  return table.entries();
}

void read_compare(const Table& table, const std::vector<Kernel>& kernels, Verification& verification) {
  constexpr std::array kWays{Compare::elements, Compare::sum, Compare::minimum, Compare::maximum, Compare::sorted};
  std::vector<std::string> names;
  for (const Compare way : kWays) names.push_back(to_string(way));
  for (const Entry& entry : output_entries(table, kernels)) {
    const std::string word = table.text_of(*entry.node, fmt::format("\"{}\" in {}", entry.key, table.title()));
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      throw UserError(fmt::format("outputs cannot be compared by \"{}\"{}", word, suggestion(word, names)),
                      table.place_of(*entry.node));
    verification.compare[entry.key] = kWays[static_cast<std::size_t>(found - names.begin())];
  }
}

void read_expected_files(const Table& table, const std::filesystem::path& folder, const std::vector<Kernel>& kernels,
                         Verification& verification) {
  for (const Entry& entry : output_entries(table, kernels)) {
    verification.files[entry.key] =
        (folder / table.text_of(*entry.node, fmt::format("\"{}\" in {}", entry.key, table.title()))).lexically_normal();
  }
}

}  // namespace

/// Of one kernel among several: its reference takes the kernel's own arguments.
std::shared_ptr<Verification> read_own_verification(const Table& table, const Kernel& kernel,
                                                    const KernelContext& context) {
  const std::string tables = "a table \"kernel\" or \"host_function\" in " + table.title();
  for (const char* key : {"reference", "files"}) {
    if (!table.has(key)) continue;
    throw UserError(fmt::format("\"{}\" belongs in [verification], which looks at what a round leaves; a kernel's own "
                                "verification has a reference: {}",
                                key, tables),
                    table.key_place(key));
  }
  if (!table.has("kernel") && !table.has("host_function"))
    throw UserError(fmt::format("{} has no reference; say {}", table.title(), tables), table.place());
  return std::make_shared<Verification>(read_verification(table, {kernel}, context));
}

std::string read_text_file(const std::filesystem::path& file, const std::string& what, const SourcePlace& place) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UserError(fmt::format("{} {} is a folder, not a file", what, file.string()), place);
  }
  auto text = read_file(file);
  if (!text)
    throw UserError(fmt::format("cannot read the {} {}: it does not exist or is not readable", what, file.string()),
                    place);
  return std::move(*text);
}

Kernel read_kernel(const Table& table, const KernelContext& context) {
  std::vector<std::string> keys{"function", "source", "include_folders", "launch", "options"};
  if (!context.main) keys.push_back("arguments");
  if (context.named) keys.insert(keys.end(), {"parameters", "verification"});
  table.allow(keys);
  Kernel kernel;
  const std::string function = table.text("function", "the name of the kernel function");
  kernel.function = Template::parse(function, table.inside(*table.find("function")));
  if (!context.modelled || table.has("source")) kernel.sources = read_sources(table, context.folder);
  if (const auto launch = table.optional_table("launch")) {
    kernel.launch = read_launch(*launch);
  } else if (context.main) {
    kernel.launch = context.main->launch;
  }
  if (!context.modelled) check_launch(kernel, table);
  kernel.options = read_options(table, kernel.sources);
  if (context.main) {
    kernel.arguments = context.main->arguments;
  } else if (const toml::node* arguments = table.find("arguments")) {
    kernel.arguments = read_arguments(table, *arguments, context.folder, context.buffers);
  }
  if (const auto own = context.named ? table.optional_table("verification") : std::nullopt)
    kernel.verification = read_own_verification(*own, kernel, context);
  return kernel;
}

Verification read_verification(const Table& table, const std::vector<Kernel>& kernels, const KernelContext& context) {
  // The reference of one kernel takes its arguments; that of several has its own, which name the buffers it shares.
  KernelContext reference{context.folder, nullptr, false, context.buffers};
  if (kernels.front().name.empty()) reference.main = &kernels.front();
  table.allow({"reference", "kernel", "host_function", "files", "outputs", "per_configuration", "compare",
               "absolute_tolerance", "relative_tolerance"});
  table.at_most_one_of({"reference", "kernel", "host_function", "files"});
  Verification verification;
  verification.absolute_tolerance = tolerance(table, "absolute_tolerance", verification.absolute_tolerance);
  verification.relative_tolerance = tolerance(table, "relative_tolerance", verification.relative_tolerance);
  read_outputs(table, kernels, verification);
  if (const auto compare = table.optional_table("compare")) read_compare(*compare, kernels, verification);
  verification.per_configuration = table.optional_boolean("per_configuration").value_or(false);
  if (verification.per_configuration && !table.has("kernel") && !table.has("host_function"))
    throw UserError(
        "\"per_configuration\" needs [verification.kernel] or [verification.host_function]: a reference that "
        "can run with each configuration's parameters",
        table.key_place("per_configuration"));
  if (const auto word = table.optional_text("reference")) {
    if (*word != "none" && *word != "first_correct") {
      throw UserError(fmt::format("unknown reference \"{}\"{}; or a table [verification.kernel], "
                                  "[verification.host_function] or [verification.files]",
                                  *word, suggestion(*word, {"none", "first_correct"})),
                      table.place_of(*table.find("reference")));
    }
    verification.kind = *word == "none" ? Verification::Kind::none : Verification::Kind::first_correct;
  } else if (const auto kernel = table.optional_table("kernel")) {
    verification.kind = Verification::Kind::kernel;
    verification.reference = std::make_shared<Kernel>(read_kernel(*kernel, reference));
  } else if (const auto host = table.optional_table("host_function")) {
    verification.kind = Verification::Kind::host_function;
    verification.reference = std::make_shared<Kernel>(read_kernel(*host, reference));
    for (const KernelSource& source : verification.reference->sources) {
      if (on_host(source.language)) continue;
      throw UserError(fmt::format("a host function is written in c, cpp or fortran, not {}; a reference in {} goes in "
                                  "[verification.kernel]",
                                  to_string(source.language), to_string(source.language)),
                      host->key_place("source"));
    }
  } else if (const auto files = table.optional_table("files")) {
    verification.kind = Verification::Kind::files;
    read_expected_files(*files, context.folder, kernels, verification);
  }
  return verification;
}

}  // namespace ergotune::toml_reading
