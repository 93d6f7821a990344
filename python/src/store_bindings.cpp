// Binds recorded results as NumPy columns.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/diagnosis.hpp"
#include "api/exchange.hpp"
#include "base/files.hpp"
#include "bindings.hpp"
#include "problem/document/problem_document.hpp"
#include "report/comparison_json.hpp"
#include "report/prediction.hpp"
#include "report/ranked_results.hpp"
#include "report/recording_analysis.hpp"
#include "report/report.hpp"
#include "report/result_document.hpp"
#include "store/formats/recording.hpp"
#include "tune/target/target.hpp"

namespace ergotune::python {
namespace {

template <class T>
py::array to_array(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

std::vector<int> confirmed_repeats(const Recording& recording) {
  std::vector<int> repeats(recording.size(), 0);
  for (const auto& [row, confirmation] : recording.confirmations) repeats[row] = confirmation.repeats;
  return repeats;
}

}  // namespace

void bind_store(py::module_& module) {
  py::class_<Recording>(module, "Recording", "Recorded results: a stored session, Kernel Tuner cache, T4 or CSV file.")
      .def_readonly("name", &Recording::name)
      .def_readonly("device", &Recording::device)
      .def_property_readonly("objective", [](const Recording& r) { return r.objective.text; })
      .def_readonly("warnings", &Recording::warnings)
      .def_property_readonly("provenance", [](const Recording& r) { return to_string(r.provenance); })
      .def("__len__", &Recording::size)
      .def("__repr__",
           [](const Recording& r) {
             return fmt::format("<ergotune.Recording of {} on {} ({}): {} configurations, tuned for {}>", r.name,
                                r.device.empty() ? "an unnamed device" : r.device, to_string(r.provenance), r.size(),
                                r.objective.text);
           })
      .def_property_readonly("parameter_names", [](const Recording& r) { return names_of(r.parameters); })
      .def("configuration",
           [](const Recording& r, std::size_t row) {
             if (row >= r.size()) throw py::index_error();
             return named(r.parameters, r.configuration(row));
           })
      .def("measurement",
           [](const Recording& r, std::size_t row) {
             if (row >= r.size()) throw py::index_error();
             return to_dict(r.measurement(row));
           })
      .def_property_readonly("statuses",
                             [](const Recording& r) {
                               py::list list;
                               for (auto status : r.statuses) list.append(to_string(status));
                               return list;
                             })
      .def_property_readonly("columns",
                             [](const Recording& r) {
                               py::dict columns;
                               for (const auto& c : r.columns) columns[py::str(c.name)] = to_array(c.value);
                               return columns;
                             })
      .def("standard_errors",
           [](const Recording& r, const std::string& name) -> py::object {
             const auto* column = r.column(name);
             if (!column || column->standard_error.empty()) return py::none();
             return to_array(column->standard_error);
           })
      .def("parameter_column",
           [](const Recording& r, std::size_t parameter) {
             py::list list;
             for (std::size_t row = 0; row < r.size(); ++row)
               list.append(from_value(r.parameters.at(parameter).values[r.position(row)[parameter]]));
             return list;
           })
      .def_property_readonly("confirmed", &confirmed_repeats,
                             "How often each configuration was measured again to confirm it.")
      .def(
          "to_pandas",
          [](const Recording& r) {
            py::list configurations, measurements;
            py::object default_row = py::none();
            for (std::size_t row = 0; row < r.size(); ++row) {
              if (is_default(r.parameters, r.configuration(row))) default_row = py::int_(row);
              configurations.append(named(r.parameters, r.configuration(row)));
              measurements.append(to_dict(r.measurement(row)));
            }
            return py::module_::import("ergotune._results")
                .attr("frame")(configurations, measurements, names_of(r.parameters), confirmed_repeats(r), default_row);
          },
          "A pandas.DataFrame with the columns of Result.to_pandas().");
  module.def("load_recording", &load_recording, py::arg("file"), py::arg("session") = 0,
             py::call_guard<py::gil_scoped_release>());
  module.def("analyse",
             [](const std::filesystem::path& file, std::int64_t session, const std::vector<std::string>& peaks,
                const std::filesystem::path& figure, const std::string& device) {
               return make_document([&] {
                 const RecordingAnalysis analysis = analyse_recording(
                     device.empty() ? load_recording(file, session) : record_simulated(load_problem(file), device),
                     {.peaks = peaks});
                 if (!figure.empty()) write_named_file(figure, to_svg(analysis_charts(analysis)));
                 return analysis_document(analysis);
               });
             });
  module.def("show", [](const std::filesystem::path& source, std::int64_t session,
                        const std::optional<std::string>& objective, std::size_t top) {
    std::optional<RankedResults> ranked;
    py::dict out = make_document([&] {
      ranked = load_ranked(source, session, objective);
      return stored_document(*ranked, source, top);
    });
    add_rows(out, *ranked);
    return out;
  });
  module.def("predict",
             [](const std::filesystem::path& store, std::int64_t session,
                const std::vector<std::string>& configurations, const std::string& quantity, std::size_t top) {
               return make_document([&] {
                 const PredictedSession predicted = predicted_session(store, session);
                 const Predictor predictor(predicted.space, predicted.known);
                 return prediction_document(predicted, predictor,
                                            chosen_predictions(predicted, predictor, {configurations, quantity, top}));
               });
             });
  module.def("schema", [](const std::string& document) {
    return from_json(
        nlohmann::ordered_json::parse(document == "result" ? std::string(result_schema()) : problem_schema()));
  });
  module.def("compare", [](const std::vector<std::string>& sources, const std::optional<std::string>& objective) {
    return make_document([&] {
      const ComparedFiles compared = compare_files(sources, objective);
      return comparison_json(sources, compared.sessions, compared.comparison);
    });
  });
  module.def("export_results",
             [](const std::filesystem::path& source, const std::filesystem::path& output, const std::string& format,
                std::int64_t session, const std::optional<std::string>& objective) {
               return make_document([&] {
                 std::vector<std::string> warnings;
                 auto exported = export_results({source, format, session, objective}, output, warnings);
                 exported["warnings"] = warnings;
                 return exported;
               });
             });
  module.def("import_results", [](const std::filesystem::path& file, const std::filesystem::path& store,
                                  const std::string& name, const std::string& device) {
    return make_document([&] { return import_results(file, store, name, device); });
  });
  module.def("doctor", [](const std::string& command) {
    return make_document([&] { return diagnosis_document(diagnose(command)); });
  });
  module.def(
      "write_report",
      [](const std::filesystem::path& source, const std::filesystem::path& output, std::int64_t session,
         const std::optional<std::string>& objective) {
        py::gil_scoped_release released;
        write_report(source, session, output, objective);
      },
      py::arg("source"), py::arg("output") = "report.html", py::arg("session") = 0, py::arg("objective") = py::none(),
      "Writes stored results as one self-contained page (ergotune report).");
}

}  // namespace ergotune::python
