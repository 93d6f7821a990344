#include "device_share_values.hpp"

namespace ergotune::python {

py::list device_share_list(const SessionResult& result) {
  py::list boards;
  for (const DeviceResult& board : result.boards) {
    py::dict factors;
    for (const auto& [name, factor] : board.factors)
      factors[name.c_str()] = py::dict(py::arg("value") = factor.value,
                                       py::arg("standard_error") = factor.standard_error, py::arg("n") = factor.n);
    boards.append(py::dict(py::arg("board") = board.board, py::arg("id") = board.id, py::arg("name") = board.name,
                           py::arg("lost") = board.lost, py::arg("measured") = board.results,
                           py::arg("busy_seconds") = board.busy_seconds, py::arg("idle_seconds") = board.idle_seconds,
                           py::arg("factors") = factors));
  }
  return boards;
}

}  // namespace ergotune::python
