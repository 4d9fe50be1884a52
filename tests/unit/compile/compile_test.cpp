// SPDX-License-Identifier: MIT
// Error messages of a compilation.
#include "compile/compile.h"

#include <gmock/gmock.h>

#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

TEST(Compile, a_broken_graph_is_reported_with_the_model_and_the_pass) {
  GraphBuilder s;
  const Tensor x = s.input({4});
  s.output("loss", sum(square(x)));
  CompileRequest request;
  request.name = "train";
  request.graph = s.graph();
  request.loss = request.graph.outputs[0].value;
  request.wrt = {x.id()};
  request.extend = [](Graph& graph, const std::vector<ValueId>&) {
    graph.outputs[0].value = graph.size();
  };
  try {
    static_cast<void>(compile_graph(std::move(request)));
    ADD_FAILURE() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("while compiling train, in the pass autodiff"));
  }
}

}  // namespace
}  // namespace tensorgrad::testing
