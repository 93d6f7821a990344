// Private types of SessionView.
#pragma once

#include "watch/session_view.hpp"

namespace ergotune::serve {

struct SessionView::Counted {
  std::vector<std::int64_t> ids;  ///< rows of the store
};

}  // namespace ergotune::serve
