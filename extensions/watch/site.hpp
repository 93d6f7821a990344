// What the page's server tells: sessions of a store, or of the stores of a folder. Knows nothing of sockets.
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
  /// A store, or a folder with stores. Throws UserError where it is neither.
  /// `wait`: one that is not there is awaited.
  explicit Site(std::filesystem::path place, std::int64_t session = 0, bool wait = false);

  /// Of every kind but page and events. nullopt: it is being worked out, ask again in a moment.
  std::optional<Answer> answer(const Route& route);
  /// The session with this id ("3", or "results.db:3" in a folder); null where there is none.
  SessionView* view(const std::string& id);
  /// Views that are open already.
  const std::map<std::string, std::unique_ptr<SessionView>>& views() const { return views_; }
  /// No work should run now: a CPU's energy is being measured.
  bool quiet() const;
  /// The session that the page shows first; empty while there is none.
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
