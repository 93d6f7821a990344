#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "analysis/svg_chart.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "ergotune/random.hpp"
#include "problem/tables/quantity.hpp"
#include "report/document.hpp"

extern "C" {
extern const char ergotune_embedded_report_page[];
extern const char ergotune_embedded_report_css[];
extern const char ergotune_embedded_report_js[];
extern const char ergotune_embedded_plot_js[];
extern const char ergotune_embedded_shapes_js[];
extern const char ergotune_embedded_run_js[];
extern const char ergotune_embedded_findings_js[];
extern const char ergotune_embedded_explore_js[];
extern const char ergotune_embedded_table_js[];
extern const char ergotune_embedded_compare_js[];
extern const char ergotune_embedded_live_js[];
}

namespace ergotune {
namespace {

void replace(std::string& text, std::string_view mark, std::string_view by) {
  if (const auto at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), by);
}

}  // namespace

std::string page_html(const PageParts& parts) {
  // "<" can end a script element or begin a comment inside it; in JSON it occurs in strings only
  std::string data;
  data.reserve(parts.data.size() + parts.data.size() / 64);
  for (const char c : parts.data) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string script;
  for (const char* part : {ergotune_embedded_report_js, ergotune_embedded_plot_js, ergotune_embedded_shapes_js,
                           ergotune_embedded_run_js, ergotune_embedded_findings_js, ergotune_embedded_explore_js,
                           ergotune_embedded_table_js, ergotune_embedded_compare_js, ergotune_embedded_live_js})
    script += part;
  std::string page = ergotune_embedded_report_page;
  const std::string nonce = parts.nonce.empty() ? "" : " nonce=\"" + parts.nonce + "\"";
  for (int i = 0; i < 3; ++i) replace(page, "@NONCE@", nonce);
  // user data is inserted last, so that markers in it are not replaced
  replace(page, "@CSS@", ergotune_embedded_report_css);
  replace(page, "@SCRIPT@", "(() => {\n" + script + "\n})();");
  replace(page, "@DATA@", data);
  replace(page, "@TABLE@", parts.table);  // precedes the data in the page, as the title does
  replace(page, "@TITLE@", escape_markup(parts.title));
  return page;
}

namespace {

using Json = nlohmann::ordered_json;

/// Largest number of configurations in a saved page (about 3 MB); of more, it contains a sample that includes the best.
/// A served page contains all.
constexpr std::size_t kMostRows = 20'000;

std::vector<std::size_t> rows_of_page(const Recording& recording, const Objective& objective) {
  std::vector<std::size_t> rows(recording.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() <= kMostRows) return rows;
  std::vector<double> value(recording.size());
  for (const std::size_t row : rows)
    value[row] = objective.value(recording.measurement(row)).value_or(std::numeric_limits<double>::infinity());
  if (objective.direction() == Direction::maximise)
    for (double& v : value) v = -v;
  std::nth_element(rows.begin(), rows.begin() + kMostRows / 4, rows.end(),
                   [&](std::size_t a, std::size_t b) { return value[a] < value[b]; });
  Random random(1);
  random.shuffle(std::span(rows).subspan(kMostRows / 4));
  rows.resize(kMostRows);
  std::ranges::sort(rows);
  return rows;
}

/// The best configurations, for browsers without JavaScript.
std::string table_of(const RankedResults& ranked) {
  const auto row_of = [](const char* tag, const std::vector<std::string>& cells) {
    std::string row;
    for (const std::string& cell : cells) row += fmt::format("<{0}>{1}</{0}>", tag, escape_markup(cell));
    return "<tr>" + row + "</tr>";
  };
  const bool front = ranked.objective.kind() == Objective::Kind::pareto;
  std::vector<std::string> names{"configuration"};
  if (!front && ranked.objective.quantity() != "time" && ranked.objective.quantity() != "energy")
    names.push_back(ranked.objective.name());
  names.insert(names.end(), {"time", "energy"});
  std::string rows = row_of("th", names);
  for (const std::size_t row : ranked.shown()) {
    std::vector<std::string> cells{ranked.configuration_text(row)};
    for (std::size_t n = 1; n < names.size(); ++n) {
      const bool is_objective = n + 2 < names.size();
      const auto value = is_objective ? ranked.value(row) : ranked.measurement(row).value(names[n]);
      cells.push_back(
          value ? fmt::format("{:.4g} {}", *value, is_objective ? ranked.objective.unit() : unit_of(names[n])) : "-");
    }
    rows += row_of("td", cells);
  }
  const Provenance provenance = ranked.results.provenance;
  const std::string mark = provenance == Provenance::measured
                               ? ""
                               : fmt::format("<caption>Every value is {}</caption>", to_string(provenance));
  return "<table>" + mark + rows + "</table>";
}

}  // namespace

std::string saved_data(const std::filesystem::path& file, std::int64_t session,
                       const std::optional<std::string>& wanted, ReportSummary* summary) {
  const ReportSource source = open_report_source(file, session);
  const Recording& recording = source.recording;
  const RankedResults ranked = rank_source(source, wanted);
  const Objective& objective = ranked.objective;
  Json document = report_document(source, ranked);
  const Json findings = report_findings(source, ranked);
  const std::vector<std::size_t> rows = rows_of_page(recording, objective);
  document["shown"] = rows.size();
  if (summary)
    *summary = {.problem = recording.name,
                .device = recording.device,
                .objective = objective.name(),
                .configurations = recording.size(),
                .failed = ranked.failed(),
                .space = source.space,
                .table = table_of(ranked),
                .warnings = recording.warnings};
  return "{\"saved\":true,\"document\":" + json_text(document) + ",\"findings\":" + json_text(findings) +
         ",\"results\":" + columns_json(recording, objective, rows, {.seconds = &source.seconds}) + "}";
}

ReportSummary write_report(const std::filesystem::path& source_file, std::int64_t session,
                           const std::filesystem::path& output, const std::optional<std::string>& wanted) {
  ReportSummary summary;
  PageParts parts;
  parts.data = saved_data(source_file, session, wanted, &summary);
  parts.title = summary.problem;
  parts.table = summary.table;
  write_named_file(output == "-" ? "/dev/stdout" : output, page_html(parts));
  summary.file = output;
  return summary;
}

}  // namespace ergotune
