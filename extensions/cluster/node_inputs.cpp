#include "cluster/node_inputs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "ergotune/error.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHere = "@/";  ///< prefix of paths in the folder of inputs

std::string plain(const fs::path& path) {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path), failed);
  return (failed ? fs::absolute(path).lexically_normal() : whole).relative_path().string();
}

/// Whether a path stays inside the folder.
bool is_inside(const std::string& place) {
  const fs::path path(place);
  return !place.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& p) { return p == ".."; });
}
bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// The "trees/HASH" folder of a path below it.
fs::path tree_of(const fs::path& place) {
  auto part = place.begin();
  const fs::path trees = *part;
  return ++part == place.end() ? trees : trees / *part;
}
void mark_used(const fs::path& path) {
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
}

template <class Each>
void each_kernel(Problem& problem, const Each& each) {
  const auto with_reference = [&](Verification& verification) {
    if (!verification.reference) return;
    verification.reference = std::make_shared<Kernel>(*verification.reference);
    each(*verification.reference);
  };
  for (Kernel& kernel : problem.kernels) {
    each(kernel);
    if (kernel.verification) {
      kernel.verification = std::make_shared<Verification>(*kernel.verification);
      with_reference(*kernel.verification);
    }
  }
  with_reference(problem.verification);
}

template <class Each>
void each_expected(Problem& problem, const Each& each) {
  for (auto& [name, file] : problem.verification.files) each(file);
  for (Kernel& kernel : problem.kernels)
    if (kernel.verification)
      for (auto& [name, file] : kernel.verification->files) each(file);
}

}  // namespace

NodeInputs::NodeInputs(const ProblemFile& problem) : problem_(problem) {
  each_kernel(problem_, [this](Kernel& kernel) { move_kernel(kernel); });
  each_expected(problem_, [this](fs::path& file) { file = add_file(file); });
}

void NodeInputs::add(const std::string& place, const std::string& hash, Content content) {
  const bool there = std::ranges::any_of(list_, [&](const auto& input) { return input.place == place; });
  if (!there) list_.push_back({place, hash, content.bytes});
  contents_.try_emplace(hash, std::move(content));
}

std::string NodeInputs::add_file(const fs::path& file) {
  const auto hash = content_hash_of_file(file);
  if (!hash)
    throw UserError(
        fmt::format("cannot read {}, which the problem needs on its nodes: {}", file.string(), std::strerror(errno)));
  // An array file of NumPy is recognised by its ending.
  const std::string place = "files/" + *hash + (file.extension() == ".npy" ? ".npy" : "");
  add(place, *hash, {file, {}, nullptr, fs::file_size(file)});
  return kHere + place;
}

void NodeInputs::move_kernel(Kernel& kernel) {
  for (Argument& argument : kernel.arguments) {
    Fill& fill = argument.fill;
    if (fill.kind == Fill::Kind::file) fill.file = add_file(fill.file);
    if (fill.kind != Fill::Kind::data || !fill.data) continue;
    const std::string hash = content_hash({reinterpret_cast<const char*>(fill.data->data()), fill.data->size()});
    add("files/" + hash, hash, {{}, {}, fill.data, fill.data->size()});
    fill.kind = Fill::Kind::file;
    fill.file = kHere + ("files/" + hash);
    fill.data.reset();
  }
  for (KernelSource& source : kernel.sources) move_source(source);
}

/// Headers keep their relative positions: they are copied below one folder, under their paths on this machine. The
/// folder's name is a hash of all of them, so that a changed header gets another folder.
void NodeInputs::move_source(KernelSource& source) {
  std::vector<std::string> folders;
  for (const fs::path& folder : include_folders_of(source)) folders.push_back(folder.string());
  const std::vector<IncludedFile> files = included_files(source.text, folders);
  std::string all;
  for (const IncludedFile& file : files) all += plain(file.path) + '\0' + content_hash(file.text);
  const std::string tree = "trees/" + content_hash(all) + "/";
  for (const IncludedFile& file : files) {
    const std::string hash = content_hash(file.text);
    add(tree + plain(file.path), hash, {{}, file.text, nullptr, file.text.size()});
  }
  if (!source.file.empty()) source.file = kHere + tree + plain(source.file);
  for (fs::path& folder : source.include_folders) folder = kHere + tree + plain(folder);
}

std::uint64_t NodeInputs::size(const std::string& hash) const {
  const auto found = contents_.find(hash);
  if (found == contents_.end()) throw FormatError("it asks for an input that there is not");
  return found->second.bytes;
}

std::string NodeInputs::read(const std::string& hash, std::uint64_t offset, std::size_t bytes) const {
  const std::uint64_t size = this->size(hash);
  const Content& content = contents_.at(hash);
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size - std::min(size, offset)));
  if (content.data) return {reinterpret_cast<const char*>(content.data->data()) + offset, bytes};
  if (content.file.empty()) return content.text.substr(offset, bytes);
  std::string read(bytes, '\0');
  std::ifstream in(content.file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  if (!in.read(read.data(), static_cast<std::streamsize>(bytes)))
    throw UserError(fmt::format("{} cannot be read any more, or has become shorter", content.file.string()));
  return read;
}

InputFolder::InputFolder(fs::path folder) : folder_(std::move(folder)) {
  std::error_code failed;
  fs::create_directories(folder_ / "files", failed);
  if (failed)
    throw UserError(fmt::format("no inputs can be kept in {}: {}; set XDG_CACHE_HOME to a folder that can be written",
                                folder_.string(), failed.message()));
  for (const char* kept : {"files", "trees"})
    for (const fs::path& unused : left_behind(folder_ / kept, "", std::chrono::hours(24 * 30)))
      fs::remove_all(unused, failed);
}

fs::path InputFolder::file_of(const std::string& hash) const {
  if (!is_hash(hash)) throw FormatError("an input without a hash");
  return folder_ / "files" / hash;
}

/// The temporary file of a transfer. Unique for this process, since agents of several nodes may share the folder.
fs::path InputFolder::coming(const std::string& hash) const {
  return folder_ / "files" / fmt::format("{}.{}.{}", file_of(hash).filename().string(), ::gethostid(), ::getpid());
}

std::vector<std::string> InputFolder::missing(const std::vector<agents::InputFile>& list) const {
  std::set<std::string> hashes;
  std::error_code failed;
  for (const agents::InputFile& input : list) {
    const fs::path file = file_of(input.hash);
    if (fs::file_size(file, failed) != input.bytes || failed) {
      hashes.insert(input.hash);
    } else {
      mark_used(file);
    }
  }
  return {hashes.begin(), hashes.end()};
}

void InputFolder::take(const agents::Piece& piece) {
  const fs::path file = coming(piece.hash);
  std::ofstream out(file, std::ios::binary | (begun_.insert(piece.hash).second ? std::ios::trunc : std::ios::app));
  out << piece.bytes;
  out.close();
  if (!out)
    throw UserError(fmt::format("an input cannot be written in {}: {}", folder_.string(), std::strerror(errno)));
  if (!piece.last) return;
  begun_.erase(piece.hash);
  const auto hash = content_hash_of_file(file);
  std::error_code failed;
  if (hash != piece.hash) {
    fs::remove(file, failed);
    throw UserError("an input has changed while it travelled: begin again");
  }
  fs::rename(file, file_of(piece.hash), failed);
  if (failed) throw UserError(fmt::format("an input cannot be kept in {}: {}", folder_.string(), failed.message()));
}

void InputFolder::settle(Problem& problem, const std::vector<agents::InputFile>& list) const {
  for (const agents::InputFile& input : list) {
    if (!is_inside(input.place)) throw FormatError("an input that would lie outside of its folder");
    const fs::path place = folder_ / input.place, file = file_of(input.hash);
    if (place == file) continue;
    std::error_code failed;
    fs::create_directories(place.parent_path(), failed);
    mark_used(folder_ / tree_of(input.place));
    if (fs::exists(place, failed)) continue;  // the name of the file or of its folder is a hash of its contents
    fs::create_hard_link(file, place, failed);
    if (!failed || fs::exists(place, failed)) continue;
    const auto text = read_file(file);
    if (!text || write_file(place, *text) != 0)
      throw UserError(fmt::format("an input cannot be put to {}", place.string()));
  }
  const auto move = [this](fs::path& path) {
    const std::string text = path.string();
    if (!text.starts_with(kHere)) return;
    if (!is_inside(text.substr(2))) throw FormatError("a file that would lie outside of its folder");
    path = folder_ / text.substr(2);
  };
  each_kernel(problem, [&](Kernel& kernel) {
    for (Argument& argument : kernel.arguments) move(argument.fill.file);
    for (KernelSource& source : kernel.sources) {
      move(source.file);
      std::error_code ignored;
      if (!source.file.empty()) fs::create_directories(source.file.parent_path(), ignored);
      for (fs::path& folder : source.include_folders) {
        move(folder);
        fs::create_directories(folder, ignored);  // "../x.h" can be resolved only from an existing folder
      }
    }
  });
  each_expected(problem, move);
}

}  // namespace ergotune
