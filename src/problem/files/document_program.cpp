// A whole program in a problem's document, and what of it determines results.
#include <algorithm>

#include "base/hash.hpp"
#include "problem/files/document.hpp"
#include "problem/program.hpp"

namespace ergotune::document {

namespace {

Json write(const ProgramFile& file) { return Json::array({file.name, document::write(file.text)}); }

ProgramFile read_file(const Json& json) { return {json.at(0), read_template(json.at(1))}; }

Json write_texts(const std::vector<Template>& texts) { return write_list(texts); }
std::vector<Template> read_texts(const Json& json) { return read_list<Template>(json, read_template); }

Json number_or_null(const std::optional<double>& x) { return x ? number(*x) : Json(); }

Json write_files(const std::vector<ProgramFile>& files) {
  Json json = Json::array();
  for (const ProgramFile& file : files) json.push_back(write(file));
  return json;
}

/// Contents count; of what is too large to be read each time, size and age.
Json contents_of(const std::filesystem::path& file) {
  constexpr std::uintmax_t kLargest = 256u << 20;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return {};
  if (size > kLargest)
    return Json::array({size, std::filesystem::last_write_time(file, error).time_since_epoch().count()});
  const auto hash = content_hash_of_file(file);
  return hash ? Json(*hash) : Json();
}

/// By their names below `top`, in order.
void add_contents(const std::filesystem::path& top, Json& json) {
  std::error_code error;
  if (!std::filesystem::is_directory(top, error)) return json.push_back(contents_of(top));
  std::vector<std::filesystem::path> files;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (auto entry = std::filesystem::recursive_directory_iterator(top, options, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error))
    if (entry->is_regular_file(error)) files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) json.push_back({file.lexically_relative(top).string(), contents_of(file)});
}

/// The program itself, and files that are named among the arguments, "--input=data.bin" too.
void add_named_files(const std::vector<Template>& words, const std::filesystem::path& folder, Json& json) {
  std::error_code error;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = known_text(words[i], folder);
    if (word.empty()) continue;
    if (const auto program = i == 0 ? find_program(word, folder) : std::filesystem::path(); !program.empty()) {
      json.push_back(contents_of(program));
      continue;
    }
    for (const std::string& name : {word, word.substr(word.find('=') + 1)}) {  // npos + 1 is 0
      if (name.empty() || !std::filesystem::is_regular_file(folder / name, error)) continue;
      json.push_back(contents_of(folder / name));
      break;
    }
  }
}

}  // namespace

Json write(const Program& program) {
  Json json{{"command", write_texts(program.command)},
            {"files", write_files(program.files)},
            {"build_files", write_files(program.build_files)},
            {"check_pattern", program.check_pattern},
            {"check_command", write_texts(program.check_command)},
            {"time_limit", number(program.time_limit)},
            {"place", document::write(program.place)}};
  for (const auto& [name, text] : program.environment) json["environment"][name] = document::write(text);
  if (program.folder) json["folder"] = document::write(*program.folder);
  json["build"] = Json::array();
  for (const auto& step : program.build) json["build"].push_back(write_texts(step));
  json["sources"] = write_list(program.sources);
  for (const auto& [name, pattern] : program.output) json["output"][name] = pattern;
  for (const auto& [code, status] : program.exit_status) json["exit_status"].push_back({code, status});
  if (const auto& compare = program.compare)
    json["compare"] = {document::write(compare->file), document::write(compare->reference),
                       number_or_null(compare->absolute_tolerance), number_or_null(compare->relative_tolerance)};
  return json;
}

Program read_program(const Json& json) {
  Program program;
  program.command = read_texts(json.at("command"));
  program.files = read_list<ProgramFile>(json.at("files"), read_file);
  program.build_files = read_list<ProgramFile>(json.at("build_files"), read_file);
  program.check_pattern = json.at("check_pattern");
  program.check_command = read_texts(json.at("check_command"));
  program.time_limit = number(json.at("time_limit"));
  program.place = read_place(json.at("place"));
  if (json.contains("environment"))
    for (const auto& [name, text] : json.at("environment").items()) program.environment[name] = read_template(text);
  if (json.contains("folder")) program.folder = read_template(json.at("folder"));
  for (const Json& step : json.at("build")) program.build.push_back(read_texts(step));
  program.sources = read_list<std::filesystem::path>(json.at("sources"), read_path);
  if (json.contains("output"))
    for (const auto& [name, pattern] : json.at("output").items()) program.output[name] = pattern;
  if (json.contains("exit_status"))
    for (const Json& entry : json.at("exit_status")) program.exit_status[entry.at(0)] = entry.at(1);
  if (json.contains("compare")) {
    const Json& list = json.at("compare");
    ProgramComparison compare{read_template(list.at(0)), read_path(list.at(1)), {}, {}};
    if (!list.at(2).is_null()) compare.absolute_tolerance = number(list.at(2));
    if (!list.at(3).is_null()) compare.relative_tolerance = number(list.at(3));
    program.compare = std::move(compare);
  }
  return program;
}

Json describe(const Program& program, const std::filesystem::path& folder) {
  Json json = write(program);
  for (const char* key : {"place", "sources", "compare"}) json.erase(key);
  Json contents = Json::array();
  add_named_files(program.command, folder, contents);
  for (const auto& step : program.build) add_named_files(step, folder, contents);
  add_named_files(program.check_command, folder, contents);
  for (const auto& source : program.sources) add_contents(source, contents);
  json["contents"] = contents;
  if (const auto& compare = program.compare)
    json["compare"] = {document::write(compare->file), contents_of(compare->reference),
                       number_or_null(compare->absolute_tolerance), number_or_null(compare->relative_tolerance)};
  return json;
}

}  // namespace ergotune::document
