#include "store/csv_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ergotune/base/error.hpp"
#include "ergotune/problem/quantity.hpp"
#include "store/cache_quantities.hpp"
#include "store/distinct_values.hpp"
#include "store/text_source.hpp"

namespace ergotune {

namespace {

constexpr std::string_view kErrorEnding = "_standard_error", kCountEnding = "_n";

/// The cells of one record from `at` on, which is moved behind it. Quotes may hold commas and line ends.
std::vector<std::string> next_record(const std::string& text, std::size_t& at, int& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
        cells.back() += '"';
        ++at;
      } else if (c == '"') {
        quoted = false;
      } else {
        cells.back() += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::optional<double> number(const std::string& cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

Value parameter_value(const std::string& cell) {
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), integer);
  if (error == std::errc() && end == cell.data() + cell.size()) return integer;
  if (const auto real = number(cell)) return *real;
  if (cell == "True" || cell == "true") return true;
  if (cell == "False" || cell == "false") return false;
  return cell;
}

/// What a column after the parameters holds.
struct CsvColumn {
  enum class Kind { status, value, standard_error, count, cost, ignore } kind = Kind::ignore;
  std::string name;
  double RowCosts::*cost = nullptr;
};

CsvColumn describe(const std::string& name, const std::vector<std::string>& header) {
  const auto has = [&](std::string_view other) {
    return std::find(header.begin(), header.end(), other) != header.end();
  };
  using Kind = CsvColumn::Kind;
  if (name == "status") return {Kind::status, name};
  if (name == "message" || name == "provenance" || name == "finished_at" || name == "warnings")
    return {Kind::ignore, name};
  if (name == "compile_seconds") return {Kind::cost, name, &RowCosts::compile};
  if (name == "verify_seconds") return {Kind::cost, name, &RowCosts::verify};
  if (name == "measure_seconds") return {Kind::cost, name, &RowCosts::run};
  if (name == "tuner_seconds") return {Kind::cost, name, &RowCosts::framework};
  if (name.ends_with(kErrorEnding)) {
    const std::string stem = name.substr(0, name.size() - kErrorEnding.size());
    if (has(stem)) return {Kind::standard_error, stem};
  }
  if (name.ends_with(kCountEnding)) {
    const std::string stem = name.substr(0, name.size() - kCountEnding.size());
    if (has(stem)) return {Kind::count, stem};
  }
  return {Kind::value, name};
}

std::size_t parameter_columns(const std::vector<std::string>& header) {
  const auto status = std::find(header.begin(), header.end(), "status");
  if (status != header.end()) return static_cast<std::size_t>(status - header.begin());
  const auto quantity = std::find_if(header.begin(), header.end(), [](const std::string& name) {
    const QuantityInfo* ours = quantity_info(name);
    return (ours && ours->needs_sensor()) || is_observed(name);  // "registers" may well be a parameter
  });
  return static_cast<std::size_t>(quantity - header.begin());
}

struct RowValue {
  double value = NAN, error = 0;
  std::uint32_t n = 1;
  bool is_metric = false;
};

}  // namespace

Recording read_csv(const std::filesystem::path& file) {
  const std::string text = read_all(file);
  std::size_t at = 0;
  int line = 1;
  const std::vector<std::string> header = next_record(text, at, line);
  const std::size_t parameters = parameter_columns(header);
  if (header.size() < 2 || parameters == 0 || parameters == header.size()) {
    throw UserError(
        "this is no recording that ergotune knows: neither a store, a Kernel Tuner cache, T4, nor CSV with "
        "parameters before a column \"status\" or \"time\"",
        {file.string(), 1, 0});
  }
  Recording recording;
  recording.file = file;
  recording.name = file.filename().string().substr(0, file.filename().string().find('.'));
  for (std::size_t i = 0; i < parameters; ++i) {
    Parameter parameter;
    parameter.name = header[i];
    parameter.kind = parameter_kind(header[i]);
    recording.parameters.push_back(std::move(parameter));
  }
  std::vector<CsvColumn> columns;
  for (std::size_t i = parameters; i < header.size(); ++i) columns.push_back(describe(header[i], header));

  RecordingBuilder rows(parameters);
  DistinctValues values(parameters);
  while (at < text.size()) {
    const int begins = line;
    const std::vector<std::string> cells = next_record(text, at, line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != header.size()) {
      if (at >= text.size() && text.back() != '\n') {
        recording.warnings.push_back(fmt::format("cut off after {} rows; the cut row is lost", rows.rows()));
        break;
      }
      throw UserError(fmt::format("this row has {} cells, and the header {}", cells.size(), header.size()),
                      {file.string(), begins, 0});
    }
    Configuration configuration;
    for (std::size_t i = 0; i < parameters; ++i) configuration.push_back(parameter_value(cells[i]));
    Status status = Status::ok;
    RowCosts costs;
    std::map<std::string, RowValue> found;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cells[parameters + i];
      const CsvColumn& column = columns[i];
      if (column.kind == CsvColumn::Kind::status) {
        const auto known = status_from(cell);
        if (!known) throw UserError(fmt::format("unknown status \"{}\"", cell), {file.string(), begins, 0});
        status = *known;
        continue;
      }
      const auto x = number(cell);
      if (!x) continue;  // an empty cell: nothing was measured
      switch (column.kind) {
        case CsvColumn::Kind::value:
          found[column.name].value = *x;
          break;
        case CsvColumn::Kind::standard_error:
          found[column.name].error = *x;
          break;
        case CsvColumn::Kind::count:
          found[column.name].n = static_cast<std::uint32_t>(*x);
          break;
        case CsvColumn::Kind::cost:
          costs.*column.cost = *x;
          costs.any = true;
          break;
        default:
          break;
      }
    }
    for (const auto& [name, value] : found) {
      if (std::isnan(value.value)) continue;
      const bool counted =
          std::find(header.begin(), header.end(), name + std::string(kCountEnding)) != header.end();
      rows.set(rows.column(name, !counted && !is_observed(name) && name != "energy" && name != "power"),
               value.value, value.error, value.n);
    }
    rows.finish_row(values.positions(configuration), status, costs);
  }
  rows.finish(recording);
  values.finish(recording);
  return recording;
}

}  // namespace ergotune
