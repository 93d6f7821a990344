// ergotune schema: prints the schemas of documents.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "ergotune/error.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {

namespace {

/// A document with a schema; add a row for a new one.
struct Document {
  const char* name;
  std::string (*schema)();  ///< null if there are only tables
  std::string (*tables)();  ///< for the documentation; null if there are none
};
constexpr Document kDocuments[] = {{"problem", problem_schema, problem_tables},
                                   {"result", [] { return std::string(result_schema()); }, nullptr},
                                   {"settings", nullptr, setting_rows}};

const Document& document_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Document& document : kDocuments) {
    if (document.name == name) return document;
    names.emplace_back(document.name);
  }
  throw UserError(fmt::format("no document \"{}\" has a schema{}", name, suggestion(name, names)));
}

}  // namespace

void add_schema_command(Verb app) {
  struct Options {
    std::string document = "problem";
    bool markdown = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("schema", "Print the JSON Schema of a document, with which editors complete and check it");
  verb.add_option("document", options->document,
                  "problem (default): a problem file in TOML or JSON; result: what --json of tune and show prints; "
                  "settings: those of a run, with --markdown");
  verb.add_flag("--markdown", options->markdown, "Tables of its keys in Markdown instead");
  verb.footer(
      "A problem file names its schema in the first line: #:schema problem.schema.json\n"
      "Example:\n"
      "  ergotune schema problem\n"
      "In Python: ergotune.schema(\"problem\")");
  verb.callback([options] {
    const Document& document = document_named(options->document);
    if (options->markdown && !document.tables)
      throw UserError(fmt::format("the document \"{}\" has no tables; leave --markdown out", options->document));
    if (!options->markdown && !document.schema)
      throw UserError(fmt::format("the schema of the {} is part of the problem file's; --markdown prints their table",
                                  options->document));
    fmt::print("{}", options->markdown ? document.tables() : document.schema());
  });
}

}  // namespace ergotune::cli
