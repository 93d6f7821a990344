// Files that a problem needs besides its document: contents of arguments, expected outputs, headers. They are sent to a
// node once, identified by the hash of their content.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/agent_protocol.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {

/// The session's side: converts a problem's files to paths in a node's folder of inputs, and lists these files.
class NodeInputs {
 public:
  /// Throws UserError if a file cannot be read.
  explicit NodeInputs(const ProblemFile& problem);
  /// The problem, in which files are "@/PLACE".
  const ProblemFile& problem() const { return problem_; }
  const std::vector<agents::InputFile>& list() const { return list_; }
  /// Reads `bytes` bytes of a file from `offset` on. Throws UserError if the file has changed or was removed.
  std::string read(const std::string& hash, std::uint64_t offset, std::size_t bytes) const;
  std::uint64_t size(const std::string& hash) const;

 private:
  struct Content {
    std::filesystem::path file;
    std::string text;
    std::shared_ptr<const std::vector<std::uint8_t>> data;
    std::uint64_t bytes = 0;
  };
  void add(const std::string& place, const std::string& hash, Content content);
  std::string add_file(const std::filesystem::path& file);
  void move_kernel(Kernel& kernel);
  void move_source(KernelSource& source);

  ProblemFile problem_;
  std::vector<agents::InputFile> list_;
  std::map<std::string, Content> contents_;
};

/// The agent's side: a folder that keeps inputs for later sessions.
class InputFolder {
 public:
  /// Creates the folder if needed, and removes files and trees of headers that were not used for 30 days. Throws
  /// UserError if it cannot be written to.
  explicit InputFolder(std::filesystem::path folder);
  /// Hashes of the files that are missing here.
  std::vector<std::string> missing(const std::vector<agents::InputFile>& list) const;
  /// Adds the next part of a file; the first part replaces whatever an earlier agent has left. Throws
  /// Error if the content does not match its hash.
  void take(const agents::Piece& piece);
  /// Puts all files in their places (none may be missing), and makes the problem's paths refer to them.
  void settle(Problem& problem, const std::vector<agents::InputFile>& list) const;

 private:
  std::filesystem::path file_of(const std::string& hash) const;
  std::filesystem::path coming(const std::string& hash) const;
  std::filesystem::path folder_;
  std::set<std::string> begun_;  ///< hashes of files of which a part was received
};

}  // namespace ergotune
