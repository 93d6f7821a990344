// The steps of a workload in a problem's document.
#include "problem/files/document.hpp"

namespace ergotune::document {

Json write(const Step& step) {
  return Json{{"kind", static_cast<int>(step.kind)},
              {"name", step.name},
              {"kernel", step.kernel},
              {"launches", write(step.launches)},
              {"variable", step.variable},
              {"from", write(step.from)},
              {"to", write(step.to)},
              {"by", write(step.by)},
              {"first", step.first},
              {"second", step.second},
              {"steps", write_list(step.steps)},
              {"order", write(step.order)},
              {"priority", write(step.priority)},
              {"multiprocessors", write(step.multiprocessors)},
              {"place", write(step.place)}};
}

Step read_step(const Json& json) {
  Step step;
  step.kind = read_enumerator(json.at("kind"), Step::Kind::group);
  step.name = json.at("name");
  step.kernel = json.at("kernel");
  step.launches = read_expression(json.at("launches"));
  step.variable = json.at("variable");
  step.from = read_expression(json.at("from"));
  step.to = read_expression(json.at("to"));
  step.by = read_expression(json.at("by"));
  step.first = json.at("first");
  step.second = json.at("second");
  step.steps = read_list<Step>(json.at("steps"), read_step);
  step.order = read_template(json.at("order"));
  step.priority = read_template(json.at("priority"));
  if (json.contains("multiprocessors")) step.multiprocessors = read_expression(json.at("multiprocessors"));
  step.place = read_place(json.at("place"));
  return step;
}

}  // namespace ergotune::document
