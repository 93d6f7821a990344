#include "store/formats/recording_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ergotune/error.hpp"
#include "problem/tables/quantity.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/exported_session.hpp"
#include "store/formats/text_source.hpp"

namespace ergotune {

namespace {

constexpr std::string_view kErrorEnding = "_standard_error", kCountEnding = "_n", kDegreesEnding = "_degrees";

/// Returns the cells of the record at `at` and moves `at` behind it. Quoted cells may contain commas and line ends.
std::vector<std::string> next_record(const std::string& text, std::size_t& at, int& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c == '"' && text[at + 1] == '"') {  // a string is terminated by a zero, so that at + 1 is readable
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

/// The content of a column after the parameters.
struct CsvColumn {
  enum class Kind { status, value, standard_error, count, degrees, cost, text } kind = Kind::value;
  std::string name;
  double RowCosts::*cost = nullptr;
};

CsvColumn describe(const std::string& name, const std::vector<std::string>& header) {
  const auto has = [&](std::string_view other) { return std::ranges::find(header, other) != header.end(); };
  using Kind = CsvColumn::Kind;
  if (name == "status") return {Kind::status, name};
  constexpr std::string_view kTexts[] = {"message", "device", "provenance", "finished_at", "warnings"};
  constexpr std::string_view kConfirmation[] = {"objective", "confirmed", "searched"};  // to_csv() writes all of them
  const bool of_session = std::ranges::find(kConfirmation, name) != std::end(kConfirmation) || name == "default";
  if (std::ranges::find(kTexts, name) != std::end(kTexts) || (of_session && std::ranges::all_of(kConfirmation, has)))
    return {Kind::text, name};
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
  if (name.ends_with(kDegreesEnding)) {
    const std::string stem = name.substr(0, name.size() - kDegreesEnding.size());
    if (has(stem + std::string(kErrorEnding))) return {Kind::degrees, stem};
  }
  return {Kind::value, name};
}

std::size_t parameter_columns(const std::vector<std::string>& header) {
  const auto status = std::ranges::find(header, "status");
  if (status != header.end()) return static_cast<std::size_t>(status - header.begin());
  const auto quantity = std::ranges::find_if(header, [](const std::string& name) {
    const QuantityInfo* ours = quantity_info(name);
    return (ours && ours->needs_sensor()) || is_observed(name);  // "registers" may be a parameter
  });
  return static_cast<std::size_t>(quantity - header.begin());
}

struct RowValue {
  double value = NAN;
  std::optional<double> error;
  std::uint32_t n = 1;
  std::optional<double> degrees;
};

class CsvReader {
 public:
  explicit CsvReader(const std::filesystem::path& file)
      : text_(read_all(file, &cut_)),
        header_(next_record(text_, at_, line_)),
        parameters_(parameter_columns(header_)),
        rows_(parameters_),
        values_(parameters_) {
    recording_.file = file;
    if (parameters_ == 0 || parameters_ == header_.size())
      fail(
          "this is not a recording that ergotune knows: neither a store, a Kernel Tuner cache, T4, nor CSV with "
          "parameters before a column \"status\" or \"time\" (a problem file is for tune, measure and space)",
          1);
    recording_.name = file.filename().string().substr(0, file.filename().string().find('.'));
    for (std::size_t i = 0; i < parameters_; ++i) recording_.parameters.push_back(recorded_parameter(header_[i]));
    for (std::size_t i = parameters_; i < header_.size(); ++i) columns_.push_back(describe(header_[i], header_));
  }

  Recording read() {
    while (at_ < text_.size()) {
      const int begins = line_;
      const std::vector<std::string> cells = next_record(text_, at_, line_);
      if (cells.size() == 1 && cells[0].empty()) continue;
      const bool ends = text_[at_ - 1] == '\n';
      if (cut_ && !ends) break;  // the last number may be cut off
      if (cells.size() != header_.size()) {
        if (ends) fail(fmt::format("this row has {} cells, and the header {}", cells.size(), header_.size()), begins);
        cut_ = true;
        break;
      }
      add(cells, begins);
    }
    if (cut_)
      recording_.warnings.push_back(fmt::format("cut off after {} rows; the cut row is lost", rows_.rows()));
    else if (rows_.rows() > 0 && text_.back() != '\n')
      recording_.warnings.push_back(
          "its last line has no end: if the file was cut there, the last row's last value is cut as well");
    rows_.finish(recording_);
    values_.finish(recording_);
    return std::move(recording_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, int line) const {
    throw UserError(message, {recording_.file.string(), line, 0});
  }

  void add(const std::vector<std::string>& cells, int line) {
    Configuration configuration;
    for (std::size_t i = 0; i < parameters_; ++i) configuration.push_back(parameter_value(cells[i]));
    Status status = Status::ok;
    RowCosts costs;
    std::map<std::string, RowValue> found;
    std::map<std::string, std::string> texts;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cells[parameters_ + i];
      if (columns_[i].kind == CsvColumn::Kind::status) {
        const auto known = status_from(cell);
        if (!known) fail(fmt::format("unknown status \"{}\"", cell), line);
        status = *known;
      } else if (columns_[i].kind == CsvColumn::Kind::text) {
        if (!cell.empty()) texts[columns_[i].name] = cell;
      } else if (const auto x = number(cell)) {  // an empty cell means not measured
        take(columns_[i], *x, found, costs);
      }
    }
    Origin origin;
    origin.provenance = provenance_in_file(texts["provenance"]);
    for (const auto& [name, value] : found) {
      if (std::isnan(value.value)) continue;
      const std::size_t column = rows_.column(name, is_metric(name));
      // to_csv() leaves the error of a metric empty where it is unknown.
      const bool unknown =
          is_metric(name) && std::ranges::find(header_, name + std::string(kErrorEnding)) != header_.end();
      rows_.set(column, value.value, value.error.value_or(unknown ? NAN : 0), value.n);
      if (value.degrees) rows_.set_degrees(column, *value.degrees);
      rows_.set_origin(column, origin);
    }
    // One simulated row is enough for the heading of all.
    recording_.provenance = std::max(recording_.provenance, origin.provenance);
    add_texts(texts);
    if (texts["default"] == "1") set_default(recording_, configuration);
    rows_.finish_row(values_.positions(configuration), status, costs, number(texts["finished_at"]).value_or(0));
  }

  /// Sets what to_csv() writes of a row and of its session besides values.
  void add_texts(std::map<std::string, std::string>& texts) {
    const std::size_t row = rows_.rows();
    if (!texts["message"].empty()) recording_.messages[row] = texts["message"];
    if (!texts["device"].empty() && !number(texts["device"])) recording_.device = texts["device"];
    for (std::string_view rest = texts["warnings"]; !rest.empty();) {
      const std::size_t end = std::min(rest.find("; "), rest.size());
      recording_.row_warnings[row].emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    const std::string& goal = texts["objective"];
    if (goal.size() <= 4 || (!goal.starts_with("min ") && !goal.starts_with("max "))) return;
    recording_.objective.text = goal.substr(4);
    recording_.objective.direction = goal.starts_with("max") ? Direction::maximise : Direction::minimise;
    if (const double repeats = number(texts["confirmed"]).value_or(0); repeats >= 1)
      add_confirmation(recording_, row, {static_cast<int>(std::min(repeats, 1e6)), number(texts["searched"])});
  }

  static void take(const CsvColumn& column, double x, std::map<std::string, RowValue>& found, RowCosts& costs) {
    switch (column.kind) {
      case CsvColumn::Kind::value:
        found[column.name].value = x;
        break;
      case CsvColumn::Kind::standard_error:
        found[column.name].error = x;
        break;
      case CsvColumn::Kind::count:
        found[column.name].n = static_cast<std::uint32_t>(x);
        break;
      case CsvColumn::Kind::degrees:
        found[column.name].degrees = x;
        break;
      case CsvColumn::Kind::cost:
        costs.*column.cost = x;
        costs.any = true;
        break;
      case CsvColumn::Kind::status:
      case CsvColumn::Kind::text:
        break;
    }
  }

  /// Whether a column is a metric: columns with a count were measured; others are recognised by name.
  bool is_metric(const std::string& name) const {
    const bool counted = std::ranges::find(header_, name + std::string(kCountEnding)) != header_.end();
    return !counted && !is_observed(name) && quantity_info(name) == nullptr;
  }

  bool cut_ = false;
  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string> header_;
  std::size_t parameters_;
  std::vector<CsvColumn> columns_;
  Recording recording_;
  RecordingBuilder rows_;
  DistinctValues values_;
};

}  // namespace

Recording read_csv(const std::filesystem::path& file) { return CsvReader(file).read(); }

}  // namespace ergotune
