#include "store/cache/cache_entry.hpp"

#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/statistics.hpp"
#include "store/cache/cache_quantities.hpp"

namespace ergotune {

namespace {

using simdjson::ondemand::json_type;

// Older caches mark failures by a time of 1e20 (ms) instead of a text.
constexpr double kFailureMark = 1e19;

/// The meaning of a key in an entry.
struct Role {
  enum class Kind { ignore, parameter, cost, quantity, message, own } kind = Kind::ignore;
  std::size_t parameter = 0;
  double RowCosts::*cost = nullptr;
  std::size_t column = 0;       ///< for a single value
  std::size_t list_column = 0;  ///< for a list of readings: "times" belongs to "time"
  double scale = 1, list_scale = 1;
  bool is_time = false;
  bool known = false;  ///< columns are created when a number is found; texts create none
};

struct KeyRole {
  std::string key;
  Role role;
};

std::string stem(const std::string& key) {
  return key.size() > 1 && key.back() == 's' ? key.substr(0, key.size() - 1) : key;
}

}  // namespace

struct CacheEntryParser::State {
  explicit State(const CacheHead& head) : head(head), rows(head.parameters.size()) {
    for (const Parameter& parameter : head.parameters) indices.emplace_back(parameter.values);
    extra.resize(head.parameters.size());
    positions.resize(head.parameters.size());
  }

  const CacheHead& head;
  RecordingBuilder rows;
  std::vector<ValueIndex> indices;
  std::vector<std::vector<Value>> extra;
  std::vector<KeyRole> roles;  // in the order in which keys were found: all entries repeat it
  std::vector<std::uint32_t> positions;
  std::size_t positions_set = 0;
  RowCosts costs;
  Status status = Status::ok;
  std::optional<Status> own_status;
  bool has_time = false;
  double time = 0;
  simdjson::ondemand::parser parser;
  std::string copy;  // for text with too few readable bytes after it, or with tokens that JSON lacks

  Role role_of(const std::string& key) const {
    Role role;
    for (std::size_t i = 0; i < head.parameters.size(); ++i) {
      if (head.parameters[i].name != key) continue;
      role.kind = Role::Kind::parameter;
      role.parameter = i;
      return role;
    }
    role.kind = Role::Kind::cost;
    if (key == "compile_time") role.cost = &RowCosts::compile;
    if (key == "verification_time") role.cost = &RowCosts::verify;
    if (key == "framework_time") role.cost = &RowCosts::framework;
    if (role.cost) return role;
    role.kind = Role::Kind::quantity;
    if (key == "benchmark_time" || key == "strategy_time" || key == "timestamp") role.kind = Role::Kind::ignore;
    if (key == "error_message") role.kind = Role::Kind::message;
    if (key == "ergotune") role.kind = Role::Kind::own;
    role.scale = cache_scale(key);
    role.list_scale = cache_scale(stem(key));
    role.is_time = key == "time";
    return role;
  }

  KeyRole& find(std::string_view key, std::size_t expected) {
    if (expected < roles.size() && roles[expected].key == key) return roles[expected];
    const auto found = std::ranges::find_if(roles, [&](const KeyRole& r) { return r.key == key; });
    if (found != roles.end()) return *found;
    roles.push_back({std::string(key), role_of(std::string(key))});
    return roles.back();
  }

  std::uint32_t position(std::size_t parameter, const Value& value) {
    const std::uint32_t found = indices[parameter].find(value);
    if (found != ValueIndex::npos) return found;
    auto& list = extra[parameter];
    const auto known = std::ranges::find(list, value);
    const auto at = static_cast<std::uint32_t>(known - list.begin());
    if (known == list.end()) list.push_back(value);
    return static_cast<std::uint32_t>(head.parameters[parameter].values.size()) + at;
  }

  template <class V>
  void read_parameter(const Role& role, V& value) {
    std::uint32_t& place = positions[role.parameter];
    const json_type type = value.type();
    if (type == json_type::number) {
      std::int64_t integer = 0;
      if (value.get_int64().get(integer) == simdjson::SUCCESS) {
        place = indices[role.parameter].find(integer);
        if (place == ValueIndex::npos) place = position(role.parameter, Value(integer));
      } else {
        place = position(role.parameter, Value(double(value.get_double())));
      }
    } else if (type == json_type::string) {
      place = position(role.parameter, Value(std::string(std::string_view(value.get_string()))));
    } else if (type == json_type::boolean) {
      place = position(role.parameter, Value(bool(value.get_bool())));
    } else {
      throw simdjson::simdjson_error(simdjson::INCORRECT_TYPE);
    }
    ++positions_set;
  }

  template <class V>
  void read_list(KeyRole& entry, V& value) {
    Role& role = entry.role;
    RunningStatistics statistics;
    double sum = 0;
    for (auto item : value.get_array()) {
      if (item.type() != json_type::number) return;  // for example pairs of time and power
      const double x = double(item.get_double()) * role.list_scale;
      statistics.add(x);
      sum += x;
    }
    if (statistics.count() == 0) return;
    if (entry.key == "times") costs.run = sum, costs.any = true;
    if (!role.known) {
      const std::string name = stem(entry.key);
      role.list_column = rows.column(name, !is_observed(name));
      role.known = true;
    }
    rows.set_statistics(role.list_column, statistics.mean(), statistics.standard_error(),
                        static_cast<std::uint32_t>(statistics.count()));
  }

  void read_number(KeyRole& entry, double x) {
    Role& role = entry.role;
    x *= role.scale;
    if (role.is_time) {
      if (x >= kFailureMark * role.scale) {
        if (status == Status::ok) status = Status::runtime_error;
        return;
      }
      time = x;
      has_time = true;
    }
    if (!role.known) {
      role.column = rows.column(entry.key, !is_observed(entry.key));
      role.known = true;
    }
    rows.set(role.column, x);
  }

  template <class V>
  void read_quantity(KeyRole& entry, V& value) {
    const json_type type = value.type();
    if (type == json_type::number) {
      read_number(entry, value.get_double());
    } else if (type == json_type::array) {
      read_list(entry, value);
    } else if (type == json_type::string) {
      if (const auto failure = status_from_cache(std::string_view(value.get_string()))) status = *failure;
    } else if (type == json_type::null && entry.role.is_time && status == Status::ok) {
      status = Status::runtime_error;
    }
  }

  /// The object that ergotune adds to its entries: {"status": "timeout", "certainty": {"time": {"n": 3, ...}}}.
  template <class V>
  void read_own(V& value) {
    for (auto field : value.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "status") {
        own_status = status_from(std::string_view(field.value().get_string()));
      } else if (key == "certainty") {
        for (auto entry : field.value().get_object()) read_certainty(entry);
      }
    }
  }

  template <class F>
  void read_certainty(F& field) {
    const std::string name(std::string_view(field.unescaped_key()));
    const std::size_t column = rows.column(name, !is_observed(name));
    double error = 0;
    std::uint64_t n = 1;
    for (auto part : field.value().get_object()) {
      const std::string_view key = part.unescaped_key();
      auto value = part.value();
      if (key == "n") n = value.get_uint64();
      if (key == "degrees") rows.set_degrees(column, value.get_double());
      if (key == "standard_error")
        error =
            value.type() == json_type::number ? double(value.get_double()) : std::numeric_limits<double>::quiet_NaN();
    }
    rows.set_error(column, error, static_cast<std::uint32_t>(n));
  }

  /// Throws simdjson_error if the text is not a complete JSON object.
  void read(const char* text, std::size_t size, std::size_t readable) {
    positions_set = 0;
    costs = {};
    status = Status::ok;
    own_status.reset();
    has_time = false;
    auto document = parser.iterate(text, size, readable);
    std::size_t expected = 0;
    for (auto field : document.get_object()) {
      KeyRole& entry = find(std::string_view(field.unescaped_key()), expected++);
      auto value = field.value();
      switch (entry.role.kind) {
        case Role::Kind::parameter:
          read_parameter(entry.role, value);
          break;
        case Role::Kind::cost:
          costs.*entry.role.cost = double(value.get_double()) * 1e-3;
          costs.any = true;
          break;
        case Role::Kind::quantity:
          read_quantity(entry, value);
          break;
        case Role::Kind::message:
          rows.set_message(std::string_view(value.get_string()));
          break;
        case Role::Kind::own:
          read_own(value);
          break;
        case Role::Kind::ignore:
          break;
      }
    }
    const char* behind = nullptr;
    if (document.current_location().get(behind) == simdjson::SUCCESS)
      throw simdjson::simdjson_error(simdjson::TAPE_ERROR);  // incomplete: more entries follow on its line
    if (costs.run == 0 && has_time) costs.run = time;        // without single times, at least one run took place
    if (positions_set != positions.size()) throw simdjson::simdjson_error(simdjson::NO_SUCH_FIELD);
  }
};

CacheEntryParser::CacheEntryParser(const CacheHead& head) : state_(std::make_unique<State>(head)) {}
CacheEntryParser::~CacheEntryParser() = default;

namespace {

/// Replaces NaN and Infinity, which Python writes although JSON lacks them. Returns whether there were any.
bool replace_python_tokens(std::string& text) {
  bool any = false;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view token : {"-Infinity", "Infinity", "NaN"}) {
        if (text.compare(i, token.size(), token) != 0) continue;
        text.replace(i, token.size(), "null");
        any = true;
        break;
      }
    }
  }
  return any;
}

}  // namespace

bool CacheEntryParser::parse(const char* text, std::size_t size, std::size_t readable) {
  State& state = *state_;
  const auto attempt = [&](const char* from, std::size_t length, std::size_t room) {
    try {
      state.read(from, length, room);
      return true;
    } catch (const simdjson::simdjson_error&) {
      state.rows.drop_row();
      return false;
    }
  };
  bool good = false;
  if (readable >= size + simdjson::SIMDJSON_PADDING) {
    good = attempt(text, size, readable);
  } else {
    state.copy.assign(text, size);
    state.copy.resize(size + simdjson::SIMDJSON_PADDING);
    good = attempt(state.copy.data(), size, state.copy.size());
  }
  if (!good) {
    std::string mended(text, size);
    if (!replace_python_tokens(mended)) return false;
    const std::size_t length = mended.size();
    mended.resize(length + simdjson::SIMDJSON_PADDING);
    if (!attempt(mended.data(), length, mended.size())) return false;
  }
  state.rows.finish_row(state.positions.data(), state.own_status.value_or(state.status), state.costs);
  return true;
}

RecordingBuilder CacheEntryParser::take_rows() {
  RecordingBuilder rows = std::move(state_->rows);
  state_->rows = RecordingBuilder(state_->positions.size());
  // the columns were moved with the rows
  for (KeyRole& entry : state_->roles) entry.role.known = false;
  return rows;
}

std::vector<std::vector<Value>> CacheEntryParser::extra_values() const { return state_->extra; }

}  // namespace ergotune
