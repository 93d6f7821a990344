#include "report/page.hpp"

#include "analysis/svg_chart.hpp"

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
  replace(page, "@TITLE@", escape_markup(parts.title));  // precedes the data in the page
  return page;
}

}  // namespace ergotune
