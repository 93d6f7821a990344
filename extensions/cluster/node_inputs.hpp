// What a problem needs beside its document: files that fill arguments, expected outputs, headers. They travel to a node
// once, known by what is in them.
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

/// The session's side: a problem whose files are places in a node's folder of inputs, and what is to lie there.
class NodeInputs {
 public:
  /// Throws UserError for a file that cannot be read.
  explicit NodeInputs(const ProblemFile& problem);
  /// Files are "@/PLACE".
  const ProblemFile& problem() const { return problem_; }
  const std::vector<agents::InputFile>& list() const { return list_; }
  /// So many bytes of a file from an offset on. Throws UserError where it has changed or gone meanwhile.
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

/// The agent's side: a folder in which inputs are kept from session to session.
class InputFolder {
 public:
  /// Makes it where there is none, and forgets files and trees of headers unused for 30 days. Throws UserError where it
  /// cannot be written.
  explicit InputFolder(std::filesystem::path folder);
  /// Hashes of those that are not here.
  std::vector<std::string> missing(const std::vector<agents::InputFile>& list) const;
  /// A part of one, in order; the first begins it afresh, whatever an agent before has left. Throws Error for contents
  /// that are not what their hash says.
  void take(const agents::Piece& piece);
  /// Puts all in their places (they are here), and lets the problem's files be there.
  void settle(Problem& problem, const std::vector<agents::InputFile>& list) const;

 private:
  std::filesystem::path file_of(const std::string& hash) const;
  std::filesystem::path coming(const std::string& hash) const;
  std::filesystem::path folder_;
  std::set<std::string> begun_;  ///< hashes of those that came in part
};

}  // namespace ergotune
