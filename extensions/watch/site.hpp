// The sessions that the page's server offers: those of a store, or of the stores in a folder. Independent of sockets.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "watch/request.hpp"
#include "watch/session_view.hpp"

namespace ergotune::serve {

struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

class Site {
 public:
  /// `place`: a store, or a folder with stores. Throws UserError if it is neither, unless `wait` is set and it does not
  /// exist yet.
  explicit Site(std::filesystem::path place, std::int64_t session = 0, bool wait = false);

  /// Answers all kinds of routes except page and events. nullopt: still being computed, call again later.
  std::optional<Answer> answer(const Route& route);
  /// The session with this id ("3", or "results.db:3" in a folder); null if there is none.
  SessionView* view(const std::string& id);
  /// The views that are open.
  const std::map<std::string, std::unique_ptr<SessionView>>& views() const { return views_; }
  /// Whether a CPU's energy is being measured, so that no work should run.
  bool quiet() const;
  /// The session that the page shows first; empty: none yet.
  std::string first() const;

 private:
  std::vector<std::filesystem::path> stores() const;
  std::string id_of(const std::filesystem::path& store, std::int64_t session) const;
  std::string sessions() const;
  std::optional<Answer> of_session(const Route& route);
  std::optional<Answer> compare(const Route& route);

  std::filesystem::path place_;
  bool folder_;
  std::int64_t session_;
  std::map<std::string, std::unique_ptr<SessionView>> views_;
};

}  // namespace ergotune::serve
