// The one page: what is saved as a report and what `ergotune watch` serves. Its scripts and styles are in it.
#pragma once

#include <string>

namespace ergotune {

struct PageParts {
  std::string title;
  /// JSON, which the page reads; it never becomes code or markup.
  std::string data;
  /// Of a content security policy; empty: none is written (a file has none to hold it to).
  std::string nonce;
};
std::string page_html(const PageParts& parts);

}  // namespace ergotune
