#include "watch/site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "analysis/comparison.hpp"
#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "report/comparison_json.hpp"

namespace ergotune::serve {
namespace {

using Object = nlohmann::ordered_json;

/// Rows that one update reads: takes some tenths of a second.
constexpr std::size_t kAtOnce = 20'000;
constexpr std::size_t kMostViews = 64;

Answer failure(int status, const std::string& message) {
  return {status, "application/json", json_text(Object{{"error", message}})};
}

}  // namespace

Site::Site(std::filesystem::path place, std::int64_t session, bool wait) : place_(std::move(place)), session_(session) {
  std::error_code error;
  folder_ = std::filesystem::is_directory(place_, error);
  if (folder_) {
    if (stores().empty())
      throw UserError("no store lies in this folder (FILE.db); \"ergotune tune\" makes one", {place_.string(), 0, 0});
    return;
  }
  if (wait && !is_created(place_)) return;
  const Store store = Store::open(place_, true);  // throws if the store is damaged
  if (session_ > 0) pick_session(store, session_);
}

std::vector<std::filesystem::path> Site::stores() const {
  std::error_code error;
  if (!folder_ && !is_store(place_)) return {};
  if (!folder_) return {place_};
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(place_, error))
    if (entry.path().extension() == ".db" && entry.is_regular_file(error) && is_store(entry.path()))
      found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string Site::id_of(const std::filesystem::path& store, std::int64_t session) const {
  return folder_ ? fmt::format("{}:{}", store.filename().string(), session) : std::to_string(session);
}

SessionView* Site::view(const std::string& id) {
  if (const auto known = views_.find(id); known != views_.end()) {
    if (known->second->stands()) return known->second.get();
    views_.erase(known);  // the store was deleted and may have been replaced
  }
  const std::size_t colon = folder_ ? id.rfind(':') : 0;
  if (colon == id.npos) return nullptr;
  const std::string_view digits = std::string_view(id).substr(folder_ ? colon + 1 : 0);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number <= 0) return nullptr;
  for (const auto& store : stores()) {
    if (id_of(store, number) != id) continue;
    try {
      auto view = std::make_unique<SessionView>(store, number);
      if (views_.size() >= kMostViews) views_.clear();
      return views_.emplace(id, std::move(view)).first->second.get();
    } catch (const UserError&) {
      return nullptr;
    }
  }
  return nullptr;
}

bool Site::quiet() const {
  return std::ranges::any_of(views_, [](const auto& view) { return view.second->quiet(); });
}

std::string Site::first() const {
  std::string best;
  double latest = -1;
  for (const auto& file : stores()) {
    if (session_ > 0 && !folder_) return id_of(file, session_);
    try {
      const Store store = Store::open(file, true);
      for (const SessionInfo& info : store.sessions()) {
        const double worked = info.rows > 0 || info.runs > 0 ? info.worked_at : 0;
        if (worked >= latest) best = id_of(file, info.id), latest = worked;
      }
    } catch (const Error&) {
      continue;  // sessions() reports the error
    }
  }
  return best;
}

std::string Site::sessions() const {
  Object list = Object::array();
  for (const auto& file : stores()) {
    try {
      const Store store = Store::open(file, true);
      for (const SessionInfo& info : store.sessions()) {
        const auto runs = store.runs(info.id);
        list.push_back(
            {{"id", id_of(file, info.id)},
             {"store", file.string()},
             {"session", info.id},
             {"problem", info.problem},
             {"device", info.device},
             {"objective", info.objective.text},
             {"provenance", to_string(info.provenance)},
             {"rows", info.rows},
             {"created_at", info.created_at},
             {"worked_at", info.worked_at},
             {"ended", runs.empty() || runs.back().ended_at == 0 ? Object(nullptr) : Object(runs.back().ended)}});
      }
    } catch (const Error& error) {
      list.push_back({{"store", file.string()}, {"error", error.what()}});
    }
  }
  return json_text(Object{{"sessions", std::move(list)}, {"first", first()}});
}

std::optional<Answer> Site::of_session(const Route& route) {
  SessionView* view = this->view(route.session);
  if (!view) return failure(404, "there is no session " + route.session);
  using Kind = Route::Kind;
  if (route.kind == Kind::control) {
    if (!view->ask(route.ask)) return failure(409, "no process on this machine works on this session");
    return Answer{.body = json_text(Object{{"asked", route.ask}})};
  }
  if (route.number < 0) return failure(400, "a whole number from 0 on is needed");
  const bool more = view->update(kAtOnce);
  if (route.kind == Kind::results) {
    std::int64_t last = 0;
    return Answer{.body = view->results(route.number, route.limit, last)};
  }
  if (more) return std::nullopt;  // read all rows first
  std::optional<std::string> body;
  if (route.kind == Kind::session) body = view->head(route.objective);
  if (route.kind == Kind::findings) body = view->findings(route.objective);
  if (route.kind == Kind::configuration) body = view->configuration(static_cast<std::size_t>(route.number));
  if (!body) return std::nullopt;
  return Answer{.body = std::move(*body)};
}

std::optional<Answer> Site::compare(const Route& route) {
  if (route.sessions.size() < 2) return failure(400, "name two sessions or more: /api/compare?session=1&session=2");
  std::vector<Objective> objectives;
  std::vector<ComparedSession> compared;
  objectives.reserve(route.sessions.size());
  for (const std::string& id : route.sessions) {
    SessionView* one = view(id);
    if (!one) return failure(404, "there is no session " + id);
    if (one->update(kAtOnce)) return std::nullopt;
  }
  for (const std::string& id : route.sessions) {
    SessionView* one = view(id);  // opened again if the first loop closed it
    if (!one || one->update(kAtOnce)) return std::nullopt;
    objectives.push_back(report_objective(one->source().recording, route.objective));
    compared.push_back({&one->source().recording, &objectives.back()});
  }
  return Answer{200, "application/json",
                json_text(comparison_json(route.sessions, compared, compare_sessions(compared)))};
}

std::optional<Answer> Site::answer(const Route& route) {
  using Kind = Route::Kind;
  try {
    if (route.kind == Kind::sessions) return Answer{.body = sessions()};
    if (route.kind == Kind::compare) return compare(route);
    if (route.kind != Kind::none && route.kind != Kind::page && route.kind != Kind::events) return of_session(route);
  } catch (const UserError& error) {
    return failure(400, error.what());
  } catch (const std::exception& error) {
    return failure(500, error.what());
  }
  return failure(404, "there is nothing here");
}

}  // namespace ergotune::serve
