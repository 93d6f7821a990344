#include "capture/capture_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>

#include "base/kernel_source/identifiers.hpp"
#include "base/npy.hpp"
#include "capture/scalar_type.hpp"

namespace ergotune::capture {
namespace {

using Kind = CapturedArgument::Kind;
constexpr const char* kAxes[] = {"X", "Y", "Z"};

/// What can be tuned of compiled code beside its blocks: values, the first of which is the program's own, and the
/// option of the kernel that takes one (src/device/entries.cpp); shared memory is part of the launch.
struct LaunchChoice {
  const char *name, *option;
  std::vector<int> values;
  const char* meaning;
};
constexpr const char *kMoreShared = "MORE_SHARED_BYTES", *kCluster = "CLUSTER_SIZE";
const LaunchChoice kLaunchChoices[] = {
    {kMoreShared, nullptr, {0, 16 << 10, 32 << 10, 64 << 10}, "unused shared memory: fewer blocks at a time on an SM"},
    {"SHARED_MEMORY_CARVEOUT",
     "--shared-memory-carveout=",
     {-1, 0, 100},
     "percent of the L1 cache that are shared memory; -1: the driver's choice"},
    {kCluster, "--cluster-size=", {1, 2, 4}, "blocks that run at a time on SMs close to each other"}};

void write_bytes(const std::filesystem::path& file, std::string_view head, const void* data, std::size_t bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(head.data(), static_cast<std::streamsize>(head.size()));
  if (bytes) out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

std::string list_of(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

/// What the file calls an argument, and its files.
std::vector<std::string> argument_names(const std::vector<CapturedArgument>& arguments) {
  std::vector<std::string> names;
  for (const CapturedArgument& argument : arguments) {
    std::string name;
    for (const char c : argument.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (name.empty() || std::ranges::find(names, name) != names.end())
      name += (name.empty() ? "argument" : "_") + std::to_string(names.size());
    names.push_back(name);
  }
  return names;
}

/// { name = "a", type = "float32", ...: what every argument begins with.
std::string beginning(const std::string& name, std::string_view type) {
  return "  { name = " + toml_text(name) + ", type = " + toml_text(type) + ", ";
}

std::string member(const std::string& name, std::string_view type, const std::string& value) {
  return "{ name = " + toml_text(name) + ", type = " + toml_text(type) + ", value = " + value + " }";
}

/// A structure with addresses: those, and words of 4 bytes around them.
std::string structure_entry(const std::string& name, const CapturedArgument& argument,
                            const std::vector<std::string>& names) {
  std::vector<std::string> fields;
  const std::span<const std::byte> bytes(argument.bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto address = argument.addresses.find(at);
    const bool is_address = address != argument.addresses.end();
    const std::string_view type = is_address ? "uint64" : bytes.size() - at >= 4 ? "uint32" : "uint8";
    const std::size_t size = bytes_of(type);
    fields.push_back(
        member(is_address ? "&" + names[address->second.first] : "s" + std::to_string(at), type,
               is_address ? std::to_string(address->second.second) : number_text(type, bytes.subspan(at, size))));
    at += size;
  }
  return beginning(name, argument.type.empty() ? "bytes" : argument.type) + "fields = " + list_of(fields) + " },";
}

/// A scalar as a number, a vector's components, or words of 4 bytes (of 1), which are the same bytes.
std::string scalar_entry(const std::string& name, const CapturedArgument& argument) {
  const std::span<const std::byte> bytes(argument.bytes);
  std::string_view element = element_of(argument.type);
  if (!element.empty() && bytes.size() == bytes_of(element)) {
    if (const std::string number = number_text(element, bytes); !number.empty())
      return beginning(name, element) + "value = " + number + " },";
  }
  const auto components = [&](std::string_view type) {
    const std::size_t size = bytes_of(type);
    std::vector<std::string> fields;
    for (std::size_t i = 0; i * size < bytes.size(); ++i) {
      const std::string number = bytes.size() % size ? std::string() : number_text(type, bytes.subspan(i * size, size));
      if (number.empty()) return std::string();
      fields.push_back(member("s" + std::to_string(i), type, number));
    }
    return list_of(fields);
  };
  std::string fields = element.empty() ? std::string() : components(element);
  if (fields.empty()) fields = components(bytes.size() % 4 == 0 ? "uint32" : "uint8");
  return beginning(name, argument.type.empty() ? "bytes" : argument.type) + "fields = " + fields + " },";
}

/// Memory that a launch changes and is given as several arguments is one buffer; the others are its address.
void share_memory(std::vector<CapturedArgument>& arguments) {
  const auto is_shared = [](const CapturedArgument& argument) {
    return argument.kind == Kind::buffer && argument.memory && argument.after != argument.bytes;
  };
  std::map<std::uint64_t, std::size_t> owners;  // one that may be written, if there is one
  for (const bool constant : {false, true})
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (is_shared(arguments[i]) && arguments[i].constant == constant) owners.try_emplace(arguments[i].memory, i);
  std::map<std::size_t, std::size_t> owner_of;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    CapturedArgument& argument = arguments[i];
    if (!is_shared(argument) || owners[argument.memory] == i) continue;
    owner_of[i] = owners[argument.memory];
    argument = {.kind = Kind::scalar, .name = argument.name, .bytes = std::vector<std::byte>(sizeof(void*))};
    argument.addresses[0] = {owner_of[i], 0};
  }
  for (CapturedArgument& argument : arguments)
    for (auto& [at, address] : argument.addresses)
      if (const auto other = owner_of.find(address.first); other != owner_of.end()) address.first = other->second;
}

/// What a launch leaves: which arguments are outputs, and whose contents differ.
struct Outputs {
  std::set<std::size_t> written, changed;
};

Outputs outputs_of(const std::vector<CapturedArgument>& arguments) {
  Outputs outputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const CapturedArgument& argument = arguments[i];
    if (argument.kind != Kind::buffer) continue;
    if (argument.after != argument.bytes) outputs.changed.insert(i);
    if (!argument.constant || outputs.changed.contains(i)) outputs.written.insert(i);
  }
  return outputs;
}

/// Names of the file's parameters and constants: macros of the kernel, so none that its source uses.
std::string free_name(std::string name, const std::set<std::string, std::less<>>& words) {
  while (words.contains(name)) name = "ERGOTUNE_" + name;
  return name;
}

/// The text of problem.toml, part by part.
class Writer {
 public:
  Writer(const CapturedLaunch& launch, const std::filesystem::path& folder)
      : launch_(launch),
        folder_(folder),
        names_(argument_names(launch.arguments)),
        outputs_(outputs_of(launch.arguments)) {
    if (!launch.compiled) words_ = kernel_source::identifiers_in(launch.source);
  }

  std::vector<std::string> write() {
    std::filesystem::create_directories(folder_);
    write_bytes(folder_ / launch_.source_file, "", launch_.source.data(), launch_.source.size());
    for (const auto& [name, header] : launch_.headers) write_header(name, header);
    const std::string arguments = write_arguments();
    std::string text = head() + parameters() + kernel() + "arguments = [\n" + arguments + "]\n" + geometry() +
                       options() + verification();
    // last, and whole or not at all: a folder with a problem.toml is a capture
    const auto fresh = folder_ / "problem.toml.new";
    write_bytes(fresh, text, nullptr, 0);
    std::filesystem::rename(fresh, folder_ / "problem.toml");
    return notes_;
  }

 private:
  void write_header(const std::string& name, const std::string& text) {
    const std::filesystem::path place = std::filesystem::path(name).lexically_normal();
    if (place.is_absolute() || place.empty() || *place.begin() == "..") {
      notes_.push_back("the header " + name + " lies outside of the folder and was left out");
      return;
    }
    std::filesystem::create_directories((folder_ / place).parent_path());
    write_bytes(folder_ / place, "", text.data(), text.size());
  }
  std::string axis_name(const char* what, std::size_t axis) const {
    return free_name(std::string(what) + kAxes[axis], words_);
  }
  std::string size_name(std::size_t axis) const { return axis_name("GLOBAL_SIZE_", axis); }
  std::string block_name(std::size_t axis) const { return axis_name("WORK_GROUP_", axis); }
  std::string option_name() const { return free_name("COMPILER_OPTION", words_); }

  std::string head() const {
    std::string first =
        "# A launch of " + launch_.kernel + " captured from " + launch_.program + " on " + launch_.device;
    std::replace_if(
        first.begin(), first.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    std::string text = first + "\nname = " + toml_text(launch_.kernel) + "\n";
    std::vector<std::string> restrictions;
    if (choices(kCluster).size() > 1)
      restrictions.push_back(toml_text(size_name(0) + " // " + block_name(0) + " % " + kCluster + " == 0"));
    std::string threads;
    const bool block_stays = launch_.compiled && block_use(launch_) == BlockUse::relied_on;
    for (std::size_t d = 0; d < launch_.dimensions && !block_stays; ++d) {
      restrictions.push_back(toml_text(size_name(d) + " % " + block_name(d) + " == 0"));
      threads += (d ? " * " : "") + block_name(d);
    }
    const std::string most = launch_.most_threads
                                 ? "min(device.max_threads_per_block, " + std::to_string(launch_.most_threads) + ")"
                                 : "device.max_threads_per_block";
    if (!block_stays)
      restrictions.push_back("{ expression = " + toml_text(threads + " <= " + most) +
                             ", name = \"work-group size\", class = \"device_limit\" }");
    return restrictions.empty() ? text : text + "restrictions = " + list_of(restrictions) + "\n";
  }

  std::string parameters() {
    std::string text =
        "\n[constants]                         # of the launch; `ergotune run` puts another launch's sizes here\n";
    for (std::size_t d = 0; d < launch_.dimensions; ++d)
      text += size_name(d) + " = " + std::to_string(launch_.global[d]) + "\n";
    text += "\n[parameters]\n";
    const BlockUse use = block_use(launch_);
    for (std::size_t d = 0; d < launch_.dimensions; ++d) {
      std::vector<std::string> sizes;
      if (use == BlockUse::relied_on)
        sizes.push_back(std::to_string(launch_.block[d]));
      else
        for (const std::size_t size :
             block_sizes(launch_.global[d], launch_.block[d], launch_.most_threads ? launch_.most_threads : 1024))
          sizes.push_back(std::to_string(size));
      text += block_name(d) + " = { values = " + list_of(sizes) + ", default = " + std::to_string(launch_.block[d]) +
              " }\n";
    }
    if (launch_.tune_rounding && launch_.language == "opencl" && !launch_.compiled)
      text += option_name() + " = [\"\", \"-cl-mad-enable\", \"-cl-fast-relaxed-math\"]  # they change rounding\n";
    for (const LaunchChoice& choice : kLaunchChoices)
      if (const auto values = choices(choice.name); values.size() > 1)
        text += std::string(choice.name) + " = { values = " + list_of(values) + ", default = " + values[0] + " }  # " +
                choice.meaning + "\n";
    note_what_is_tuned(use);
    if (launch_.compiled)
      text +=
          "\n# Macros and options of a compiler have no effect on compiled code. Clocks and power limits can be "
          "tuned:\n"
          "# [execution]\n# core_clock_mhz = 7\n";
    return text;
  }

  /// The values of a choice that this launch can have; none of what it cannot.
  std::vector<std::string> choices(std::string_view name) const {
    std::vector<std::string> values;
    const bool is_shared = name == kMoreShared, is_cluster = name == kCluster;
    if (!launch_.compiled || (!is_shared && launch_.language != "cuda") || (is_cluster && !launch_.may_have_cluster))
      return values;
    const std::size_t own = launch_.shared_bytes + launch_.static_shared_bytes;
    for (const LaunchChoice& choice : kLaunchChoices)
      for (const int value : choice.values)
        if (name == choice.name && !(is_cluster && launch_.global[0] % static_cast<std::size_t>(value)) &&
            !(is_shared && own + static_cast<std::size_t>(value) > launch_.most_shared_bytes))
          values.push_back(std::to_string(value));
    return values;
  }

  void note_what_is_tuned(BlockUse use) {
    if (use == BlockUse::relied_on)
      notes_.push_back(launch_.compiled ? "the compiled code has shared memory: the block stays as it is"
                                        : "the source has barriers, local memory or a demanded size: the work-group "
                                          "stays as it is; make parameters of what the source defines to tune more");
    else if (use == BlockUse::requested)
      notes_.push_back(std::string(launch_.compiled ? "the code is compiled already"
                                                    : "the source asks for its place in the work-group") +
                       ": sizes of blocks that give other results are refused by verification");
    if (launch_.block_was_open && !launch_.compiled)
      notes_.push_back("the program leaves the work-group to the driver; the default here is ergotune's choice");
  }

  std::string kernel() const {
    std::string text =
        "\n[kernel]\nfunction = " + toml_text(launch_.function.empty() ? launch_.kernel : launch_.function) +
        "\nsource = { " + launch_.language + " = " + toml_text(launch_.source_file) + " }\n";
    std::vector<std::string> folders;
    for (const std::string& folder : launch_.include_folders) folders.push_back(toml_text(folder));
    if (!folders.empty()) text += "include_folders = " + list_of(folders) + "\n";
    return text;
  }

  std::string write_arguments() {
    std::string text;
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i) {
      const CapturedArgument& argument = launch_.arguments[i];
      if (argument.kind == Kind::local_memory)
        text += beginning(names_[i], "uint8") + "local_count = " + std::to_string(argument.local_bytes) + " },";
      else if (argument.kind == Kind::scalar && !argument.addresses.empty())
        text += structure_entry(names_[i], argument, names_);
      else
        text += argument.kind == Kind::scalar ? scalar_entry(names_[i], argument) : buffer_entry(i);
      text += '\n';
    }
    return text;
  }

  std::string buffer_entry(std::size_t i) {
    const CapturedArgument& argument = launch_.arguments[i];
    std::string_view element = element_of(argument.type);
    if (element.empty() || argument.bytes.size() % bytes_of(element)) element = "uint8";
    const std::size_t count = argument.bytes.size() / bytes_of(element);
    const std::string header = npy_header(npy_type_of(element), count);
    write_bytes(folder_ / (names_[i] + ".npy"), header, argument.bytes.data(), argument.bytes.size());
    if (outputs_.changed.contains(i))
      write_bytes(folder_ / (names_[i] + ".after.npy"), header, argument.after.data(), argument.after.size());
    std::vector<std::string> addresses;
    for (const auto& [at, address] : argument.addresses)
      addresses.push_back(
          member("&" + names_[address.first] + "@" + std::to_string(at), "uint64", std::to_string(address.second)));
    return beginning(names_[i], element) + "count = " + std::to_string(count) +
           ", fill = { file = " + toml_text(names_[i] + ".npy") + " }" +
           (outputs_.written.contains(i) ? ", access = \"read_write\"" : "") +
           (addresses.empty() ? "" : ", fields = " + list_of(addresses)) +
           (argument.is_pointed_to ? ", when = \"False\"" : "") + " },";
  }

  std::string geometry() const {
    std::vector<std::string> global, block;
    for (std::size_t d = 0; d < launch_.dimensions; ++d) {
      global.push_back(toml_text(size_name(d)));
      block.push_back(toml_text(block_name(d)));
    }
    std::string text = "\n[kernel.launch]\nglobal = " + list_of(global) + "\nblock = " + list_of(block) + "\n";
    const std::string shared = std::to_string(launch_.shared_bytes);
    if (choices(kMoreShared).size() > 1)
      text += "shared_memory_bytes = " + toml_text(shared + " + " + kMoreShared) + "\n";
    else if (launch_.shared_bytes)
      text += "shared_memory_bytes = " + shared + "\n";
    return text;
  }

  std::string options() const {
    std::vector<std::string> options;
    for (const std::string& option : launch_.options) options.push_back(toml_text(option));
    if (launch_.tune_rounding && launch_.language == "opencl" && !launch_.compiled)
      options.push_back(toml_text("{{" + option_name() + "}}"));
    for (const LaunchChoice& choice : kLaunchChoices)
      if (choice.option && choices(choice.name).size() > 1)
        options.push_back(toml_text(choice.option + ("{{" + std::string(choice.name)) + "}}"));
    if (const auto& [x, y, z] = launch_.cluster; x * y * z > 1)
      options.push_back(
          toml_text("--cluster-size=" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z)));
    return options.empty() ? std::string() : "\n[kernel.options]\nall = " + list_of(options) + "\n";
  }

  std::string verification() {
    if (outputs_.changed.empty())
      notes_.push_back("this launch changed no buffer, so its results verify little: capture a later launch (--skip)");
    if (outputs_.written.empty()) return "\n[verification]\nreference = \"none\"\n";
    std::string text = "\n[verification.files]                # what the program's own launch left\n";
    for (const std::size_t i : outputs_.written)
      text += toml_text(names_[i]) + " = " +
              toml_text(names_[i] + (outputs_.changed.contains(i) ? ".after.npy" : ".npy")) + "\n";
    return text;
  }

  const CapturedLaunch& launch_;
  std::filesystem::path folder_;
  std::vector<std::string> names_;
  Outputs outputs_;
  std::set<std::string, std::less<>> words_;
  std::vector<std::string> notes_;
};

}  // namespace

BlockUse block_use(const CapturedLaunch& launch) {
  if (launch.shared_bytes || launch.static_shared_bytes) return BlockUse::relied_on;
  if (launch.compiled) return BlockUse::requested;
  for (const CapturedArgument& argument : launch.arguments)
    if (argument.kind == Kind::local_memory) return BlockUse::relied_on;
  BlockUse use = BlockUse::none;
  for (const std::string& word : kernel_source::identifiers_of_kernel(launch.source, launch.kernel)) {
    if (kernel_source::relies_on_block(word)) return BlockUse::relied_on;
    if (kernel_source::asks_for_block(word)) use = BlockUse::requested;
  }
  return use;
}

std::vector<std::size_t> block_sizes(std::size_t global, std::size_t present, std::size_t most) {
  constexpr std::size_t kFew = 12;
  std::vector<std::size_t> sizes, round;
  for (std::size_t size = 1; size <= std::min(global, most); ++size) {
    if (global % size) continue;
    sizes.push_back(size);
    if ((size & (size - 1)) == 0 || size % 32 == 0 || size == present) round.push_back(size);
  }
  if (sizes.size() > kFew && round.size() > 3) sizes = round;
  if (std::ranges::find(sizes, present) == sizes.end()) sizes.push_back(present);
  std::ranges::sort(sizes);
  return sizes;
}

std::vector<std::string> write_capture(CapturedLaunch launch, const std::filesystem::path& folder) {
  share_memory(launch.arguments);
  return Writer(launch, folder).write();
}

std::vector<std::string> split_options(const std::string& options) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool begun = false;
  for (const char c : options) {
    if (quote) {
      if (c == quote) quote = 0;
      word += c;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
      continue;
    } else {
      if (c == '"' || c == '\'') quote = c;
      word += c;
    }
    begun = true;
  }
  if (begun) words.push_back(word);
  return words;
}

std::string source_hash(std::string_view source) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

void move_capture(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::vector<std::filesystem::path> names;
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(from)) {
    const auto name = entry.path().lexically_relative(from);
    if (entry.is_directory())
      std::filesystem::create_directories(to / name);
    else if (name != "problem.toml")
      names.push_back(name);
  }
  std::filesystem::remove(to / "problem.toml");
  for (const auto& name : names) std::filesystem::rename(from / name, to / name);
  std::filesystem::rename(from / "problem.toml", to / "problem.toml");
}

}  // namespace ergotune::capture
