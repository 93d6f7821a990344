#include "evaluate/recorded/import_recording.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"

namespace ergotune {

ImportedSession import_recording(Store& store, const Recording& recording) {
  const std::string document = serialise(problem_of(recording)), file = recording.file.filename().string();
  SessionKey identity;
  identity.problem = recording.name;
  identity.problem_document = document;
  identity.device = recording.device;
  identity.conditions = "imported from " + file;
  identity.provenance = Provenance::replayed;
  std::vector<std::string> names;
  for (const Parameter& parameter : recording.parameters) names.push_back(parameter.name);
  const nlohmann::ordered_json environment{{"imported_from", file}, {"imported_at", iso_time(wall_seconds())}};
  ImportedSession imported;
  imported.session =
      store.session(identity, names, recording.objective.text,
                    environment.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), document);
  std::set<Configuration> known;
  for (StoredRow& row : store.rows(imported.session)) known.insert(std::move(row.configuration));
  std::vector<StoredRow> rows;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    Configuration configuration = recording.configuration(row);
    if (known.contains(configuration)) continue;
    StoredRow& added = rows.emplace_back();
    added.configuration = std::move(configuration);
    added.measurement = recording.measurement(row);
  }
  store.add_all(imported.session, rows);
  store.flush();
  imported.added = rows.size();
  return imported;
}

}  // namespace ergotune
