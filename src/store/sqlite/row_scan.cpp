#include "store/sqlite/row_scan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <cmath>
#include <optional>

#include "ergotune/error.hpp"
#include "store/formats/json_values.hpp"

namespace ergotune {
namespace {

RowKind kind_named(const std::string& name) {
  for (const RowKind kind : {RowKind::confirmation, RowKind::confirmed, RowKind::reference})
    if (name == to_string(kind)) return kind;
  return RowKind::search;
}

/// Numbers that JSON lacks are stored as strings (store/formats/json_values.hpp).
double number(simdjson::dom::element element) {
  double value = 0;
  if (element.get_double().get(value) == simdjson::SUCCESS) return value;
  std::string_view description;
  if (element.get_string().get(description) != simdjson::SUCCESS) return NAN;
  return description == "inf" ? INFINITY : description == "-inf" ? -INFINITY : NAN;
}

/// Reads the columns after the quantities, which both kinds of rows have: costs into `seconds`, kind, run, stage and
/// GPU into `row`.
template <class Seconds, class Row>
void take_rest(const Statement& from, Seconds& seconds, Row& row) {
  seconds.compile_seconds = from.real(9);
  seconds.verify_seconds = from.real(10);
  seconds.measure_seconds = from.real(11);
  seconds.tuner_seconds = from.real(12);
  seconds.finished_at = from.real(13);
  row.kind = kind_named(from.text(14));
  row.run = from.integer(15);
  row.stage = from.text(16);
  row.gpu = from.text(17);
}

}  // namespace

StoredRow stored_row(const Statement& from) {
  StoredRow row;
  row.id = from.integer(0);
  row.configuration = configuration_from(from.text(1));
  Measurement& m = row.measurement;
  const auto status = status_from(from.text(2));
  if (!status) throw Error("unknown status: " + from.text(2));
  m.status = *status;
  m.message = from.text(3);
  quantities_from(from.text(4), m);
  m.metrics = numbers_from(from.text(5));
  metric_errors_from(from.text(6), m);
  m.warnings = strings_from(from.text(7));
  m.times = times_from(from.text(8));
  take_rest(from, m, row);
  return row;
}

struct RowScan::State {
  State(const std::filesystem::path& file, std::int64_t number) : database(file, true), session(number) {
    check_schema(database);
    rows.emplace(database, fmt::format("SELECT {} FROM measurements WHERE session = ? AND id > ? ORDER BY id LIMIT ?",
                                       kStoredRowColumns));
  }
  Database database;
  std::int64_t session;
  std::optional<Statement> rows;
  simdjson::dom::parser quantities, metrics, errors;
};

RowScan::RowScan(const std::filesystem::path& store, std::int64_t session) {
  check_store_header(store);
  state_ = std::make_unique<State>(store, session);
}
RowScan::~RowScan() = default;

std::size_t RowScan::after(std::int64_t after, std::size_t limit, const std::function<void(const RowSummary&)>& each) {
  State& s = *state_;
  Statement& from = *s.rows;
  from.with(s.session, after, static_cast<std::int64_t>(limit));
  std::size_t count = 0;
  RowSummary row;
  for (; from.step(); ++count) {
    row.id = from.integer(0);
    row.configuration = from.text(1);
    const auto status = status_from(from.text(2));
    row.status = status.value_or(Status::runtime_error);
    row.message = from.text(3);
    row.cells.clear();
    simdjson::dom::object quantities, metrics, errors;
    const bool has_quantities = s.quantities.parse(from.text(4)).get_object().get(quantities) == simdjson::SUCCESS;
    row.damaged = !status || !has_quantities;
    if (has_quantities) {
      for (const auto [name, quantity] : quantities) {
        simdjson::dom::element value, error, degrees;
        std::uint64_t n = 1;
        if (quantity.at_key("value").get(value) != simdjson::SUCCESS) continue;
        const bool has_error = quantity.at_key("standard_error").get(error) == simdjson::SUCCESS;
        if (quantity.at_key("n").get_uint64().get(n) != simdjson::SUCCESS) n = 1;
        const auto text = [&quantity = quantity](const char* key) {
          std::string_view found;
          return quantity.at_key(key).get_string().get(found) == simdjson::SUCCESS ? found : std::string_view();
        };
        row.cells.push_back(
            {name, number(value), static_cast<float>(has_error ? number(error) : 0),
             static_cast<std::uint32_t>(std::max<std::uint64_t>(n, 1)), false,
             static_cast<float>(quantity.at_key("degrees").get(degrees) == simdjson::SUCCESS ? number(degrees) : 0),
             text("method"), text("sensor"), provenance_named(text("provenance")).value_or(Provenance::measured)});
      }
    }
    const bool has_errors = s.errors.parse(from.text(6)).get_object().get(errors) == simdjson::SUCCESS;
    if (s.metrics.parse(from.text(5)).get_object().get(metrics) == simdjson::SUCCESS) {
      for (const auto [name, value] : metrics) {
        RowSummary::Cell cell{name, number(value), 0, 1, true, 0, {}, {}};
        simdjson::dom::element error, first, degrees;
        if (has_errors && errors.at_key(name).get(error) == simdjson::SUCCESS) {
          const bool pair =
              error.at(0).get(first) == simdjson::SUCCESS && error.at(1).get(degrees) == simdjson::SUCCESS;
          cell.standard_error = static_cast<float>(number(pair ? first : error));
          if (pair) cell.degrees = static_cast<float>(number(degrees));
        }
        row.cells.push_back(cell);
      }
    }
    take_rest(from, row, row);
    each(row);
  }
  from.reset();
  return count;
}

std::vector<StoredRow> RowScan::whole(const std::vector<std::int64_t>& ids) {
  std::vector<StoredRow> result;
  if (ids.empty()) return result;
  Statement rows(state_->database,
                 fmt::format("SELECT {} FROM measurements WHERE id IN ({}) AND session = ? ORDER BY id",
                             kStoredRowColumns, fmt::join(ids, ",")),
                 state_->session);
  while (rows.step()) {
    try {
      result.push_back(stored_row(rows));
    } catch (const Error&) {
      continue;  // after() has marked it as damaged
    }
  }
  return result;
}

}  // namespace ergotune
