// The HTML page, both for saved reports and for `ergotune watch`. It contains its scripts and styles.
#pragma once

#include <string>

namespace ergotune {

struct PageParts {
  std::string title;
  /// JSON that the page reads; it is never interpreted as code or markup.
  std::string data;
  /// Nonce of the content security policy; empty: none (a saved file has no such policy).
  std::string nonce;
};
std::string page_html(const PageParts& parts);

}  // namespace ergotune
