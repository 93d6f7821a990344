#include "launcher/launch_capture.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "base/files.hpp"
#include "base/npy.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "launcher/scalar_bits.hpp"
#include "problem/checks.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::launcher {
namespace {

void insert(toml::table& table, const std::string& key, const Value& value) {
  std::visit([&](const auto& plain) { table.insert_or_assign(key, plain); }, value.data());
}

/// Rewrites the parts of a problem that the launch determines.
class LaunchWriter {
 public:
  LaunchWriter(const CapturedLaunch& launch, const std::filesystem::path& folder)
      : launch_(launch), folder_(folder), kernel_(launch.problem->kernel()), root_(toml::parse(launch.text)) {}

  void write() {
    if (launch_.problem->kernels.size() > 1 || !root_["kernel"].is_table())
      throw UserError("a kernel of several in one problem is not captured; give it a problem of its own");
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
      throw UserError(fmt::format("this folder cannot be made: {}", error.message()), {folder_.string(), 0, 0});
    write_constants();
    write_source();
    write_arguments();
    std::ostringstream text;
    text << "# A launch of " << launch_.kernel
         << " as an application made it; what it left is the reference:\n#   ergotune tune " << folder_.string()
         << " --wisdom wisdom\n"
         << root_ << "\n";
    // written last, since a folder with a problem.toml is a complete capture
    write_named_file(folder_ / "problem.toml", text.str());
  }

 private:
  void write_constants() {
    toml::table constants;
    for (const auto& [name, value] : launch_.constants)
      if (name.find('.') == std::string::npos) insert(constants, name, value);
    root_.insert_or_assign("constants", std::move(constants));
    root_.erase("constants_for");
  }

  void write_source() {
    const KernelSource& source = source_for_device(kernel_, launch_.backend);
    const std::string name = source.file.empty() ? (source.language == Language::opencl ? "kernel.cl" : "kernel.cu")
                                                 : source.file.filename().string();
    write_named_file(folder_ / name, source.text);
    toml::table& kernel = *root_["kernel"].as_table();
    toml::table sources;
    sources.insert_or_assign(to_string(source.language), name);
    kernel.insert_or_assign("source", std::move(sources));
    toml::array folders;
    for (const auto& folder : include_folders_of(source)) folders.push_back(folder.string());
    if (!folders.empty()) kernel.insert_or_assign("include_folders", std::move(folders));
  }

  void write_arguments() {
    toml::array* entries = root_["kernel"]["arguments"].as_array();
    const auto& arguments = arguments_of(*launch_.problem, kernel_);
    if (!entries || entries->size() != arguments.size())
      throw UserError("the problem's arguments are not written one by one, and are not captured");
    toml::table files;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      toml::table* entry = (*entries)[i].as_table();
      if (!entry || entry->contains("buffer"))
        throw UserError("arguments that are named in [buffers] are not captured; write them with the kernel");
      const Argument& argument = arguments[i];
      if (argument.kind == Argument::Kind::buffer) write_buffer(argument, launch_.arguments[i], *entry, files);
      if (argument.kind == Argument::Kind::scalar && argument.fields.empty() &&
          !launch_.problem->constants.contains(argument.value.to_string()))
        insert(*entry, "value", value_of(argument.type, bits_of(argument.type, launch_.arguments[i].before.data())));
    }
    if (files.empty()) return;
    toml::table verification;
    for (const char* kept : {"absolute_tolerance", "relative_tolerance", "compare"})
      if (const toml::node* value = root_["verification"][kept].node()) verification.insert_or_assign(kept, *value);
    verification.insert_or_assign("files", std::move(files));
    root_.insert_or_assign("verification", std::move(verification));
  }

  void write_buffer(const Argument& argument, const CapturedArgument& seen, toml::table& entry, toml::table& files) {
    const std::int64_t count = whole_count(argument.count.evaluate(launch_.constants),
                                           fmt::format("the count of \"{}\"", argument.name), argument.place);
    const std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 0)) * size_of(argument.type);
    if (bytes > seen.before.size())
      throw UserError(fmt::format("the buffer \"{}\" holds {} bytes, and {} elements of {} take {}", argument.name,
                                  seen.before.size(), count, to_string(argument.type), bytes));
    const std::string before = argument.name + ".npy", after = argument.name + "_after.npy";
    write_array(before, argument.type, seen.before, bytes);
    toml::table fill;
    fill.insert_or_assign("file", before);
    fill.is_inline(true);
    entry.insert_or_assign("fill", std::move(fill));
    if (argument.access == Access::read) return;
    write_array(after, argument.type, seen.after, bytes);
    files.insert_or_assign(argument.name, after);
  }

  void write_array(const std::string& name, ElementType type, const std::vector<std::byte>& data, std::size_t bytes) {
    std::string text = npy_header(npy_type_of(to_string(type)), bytes / size_of(type));
    text.append(reinterpret_cast<const char*>(data.data()), std::min(bytes, data.size()));
    write_named_file(folder_ / name, text);
  }

  const CapturedLaunch& launch_;
  std::filesystem::path folder_;
  const Kernel& kernel_;
  toml::table root_;
};

}  // namespace

CaptureSettings CaptureSettings::from_environment() {
  CaptureSettings wish;
  wish.names = split(environment_variable("ERGOTUNE_CAPTURE"));
  std::erase(wish.names, std::string());
  const std::string folder = environment_variable("ERGOTUNE_CAPTURE_DIR");
  wish.folder = folder.empty() ? "captured" : folder;
  wish.skip = std::atol(environment_variable("ERGOTUNE_CAPTURE_SKIP").c_str());
  return wish;
}

bool CaptureSettings::means(const std::string& kernel) const {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return ::fnmatch(name.c_str(), kernel.c_str(), 0) == 0; });
}

void write_launch(const CapturedLaunch& launch, const std::filesystem::path& folder) {
  LaunchWriter(launch, folder).write();
}

}  // namespace ergotune::launcher
