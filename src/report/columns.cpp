#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "report/document.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::size_t>;

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Appends "name":[...], where `write` appends the element of each row.
template <typename Write>
void add_list(std::string& out, const std::string& name, const Rows& rows, const Write& write) {
  out += quoted(name) + ":[";
  bool first = true;
  for (const std::size_t row : rows) {
    if (!first) out += ',';
    first = false;
    write(std::back_inserter(out), row);
  }
  out += ']';
}

template <typename Out>
void write_number(Out out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(out, "{:.7g}", value);
  } else {
    fmt::format_to(out, "null");
  }
}

/// Texts that repeat: {"names": [...], "of": [position by row]}.
void add_names(std::string& out, const std::string& name, const Rows& rows, const std::vector<std::string>& words) {
  std::map<std::string, std::size_t> number;
  std::vector<std::string> names;
  std::vector<std::size_t> of;
  for (const std::size_t row : rows) {
    const auto [place, added] = number.emplace(words[row], names.size());
    if (added) names.push_back(words[row]);
    of.push_back(place->second);
  }
  std::size_t at = 0;
  out += quoted(name) + ":{\"names\":" + Json(names).dump(-1, ' ', false, Json::error_handler_t::replace) + ",";
  add_list(out, "of", rows, [&](auto to, std::size_t) { fmt::format_to(to, "{}", of[at++]); });
  out += '}';
}

void add_columns(std::string& out, const Recording& recording, const Rows& rows) {
  out += "\"columns\":{";
  bool first = true;
  for (const RecordedColumn& column : recording.columns) {
    if (!std::exchange(first, false)) out += ',';
    add_list(out, column.name, rows, [&](auto to, std::size_t row) { write_number(to, column.value[row]); });
  }
  out += "},\"half_widths\":{";
  first = true;
  for (const RecordedColumn& column : recording.columns) {
    if (column.standard_error.empty()) continue;
    if (!std::exchange(first, false)) out += ',';
    add_list(out, column.name, rows, [&](auto to, std::size_t row) { write_number(to, column.half_width(row)); });
  }
  out += '}';
}

}  // namespace

std::string columns_json(const Recording& recording, const Objective& objective, const Rows& rows,
                         const ColumnsExtra& extra) {
  std::string out = "{";
  add_list(out, "rows", rows, [](auto to, std::size_t row) { fmt::format_to(to, "{}", row); });
  out += ",\"parameters\":[";
  for (std::size_t p = 0; p < recording.parameters.size(); ++p) {
    Json values = Json::array();
    for (const Value& value : recording.parameters[p].values)
      values.push_back(std::visit([](const auto& v) { return Json(v); }, value.data()));
    out += fmt::format("{}{{\"name\":{},\"values\":{},", p ? "," : "", quoted(recording.parameters[p].name),
                       values.dump(-1, ' ', false, Json::error_handler_t::replace));
    add_list(out, "of", rows, [&](auto to, std::size_t row) { fmt::format_to(to, "{}", recording.position(row)[p]); });
    out += '}';
  }
  out += "],";
  std::vector<std::string> statuses(recording.size());
  for (const std::size_t row : rows) statuses[row] = to_string(recording.statuses[row]);
  add_names(out, "status", rows, statuses);
  out += ',';
  const ObjectiveSpec& wanted = objective.spec();
  add_list(out, "confirmed", rows, [&](auto to, std::size_t row) {
    const auto confirmed = recording.confirmed.find(row);
    fmt::format_to(to, "{}", confirmed != recording.confirmed.end() && confirmed->second == wanted ? 1 : 0);
  });
  out += ',';
  add_list(out, "objective", rows, [&](auto to, std::size_t row) {
    write_number(to, objective.value(recording.measurement(row)).value_or(NAN));
  });
  out += ',';
  if (extra.seconds && !extra.seconds->empty()) {
    add_list(out, "seconds", rows, [&](auto to, std::size_t row) { write_number(to, (*extra.seconds)[row]); });
    out += ',';
  }
  for (const auto& [name, words] : {std::pair("stage", extra.stages), std::pair("device", extra.gpus)}) {
    if (!words) continue;
    add_names(out, name, rows, *words);
    out += ',';
  }
  add_columns(out, recording, rows);
  out += '}';
  return out;
}

}  // namespace ergotune
