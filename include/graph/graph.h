/*
 * graph.h - a graph: put together from operators, or parsed (parser/onnx_parser.h). Copies are the same graph.
 */
#ifndef DOPPEL_GRAPH_GRAPH_H
#define DOPPEL_GRAPH_GRAPH_H

#include "graph/operator.h"

namespace ge {

class Graph {
  public:
    Graph() : Graph("graph") {}
    explicit Graph(const char *name) : graph_(dp_ge_graph_new(name)) {}
    explicit Graph(const std::string &name) : Graph(name.c_str()) {}
    Graph(const Graph &other) : graph_(dp_ge_graph_hold(other.graph_)) {}
    Graph(Graph &&other) noexcept : graph_(other.graph_) { other.graph_ = nullptr; }
    Graph &operator=(Graph other) noexcept {
        std::swap(graph_, other.graph_);
        return *this;
    }
    ~Graph() { dp_ge_graph_release(graph_); }

    Graph &SetInputs(const std::vector<Operator> &inputs) {
        std::vector<dp_ge_operator *> ops;
        for (const Operator &op : inputs)
            ops.push_back(op.ToC());
        dp_ge_graph_inputs(graph_, ops.data(), ops.size());
        return *this;
    }
    Graph &SetOutputs(const std::vector<Operator> &outputs) {
        std::vector<dp_ge_operator *> ops;
        for (const Operator &op : outputs)
            ops.push_back(op.ToC());
        dp_ge_graph_outputs(graph_, ops.data(), nullptr, ops.size());
        return *this;
    }
    /* Which of its outputs each gives; an empty list: all. */
    Graph &SetOutputs(const std::vector<std::pair<Operator, std::vector<size_t>>> &outputs) {
        std::vector<dp_ge_operator *> ops;
        std::vector<int64_t> places;
        for (const auto &output : outputs) {
            std::vector<int64_t> wanted(output.second.begin(), output.second.end());
            if (wanted.empty())
                wanted.push_back(-1);
            for (int64_t place : wanted) {
                ops.push_back(output.first.ToC());
                places.push_back(place);
            }
        }
        dp_ge_graph_outputs(graph_, ops.data(), places.data(), ops.size());
        return *this;
    }
    graphStatus GetName(AscendString &name) const {
        name = AscendString(dp_ge_graph_name(graph_));
        return GRAPH_SUCCESS;
    }
    std::string GetName() const { return dp_ge_graph_name(graph_); }
    bool IsValid() const { return graph_ != nullptr; }

    /* For Doppel's own functions; borrowed. */
    dp_ge_graph *ToC() const { return graph_; }

  private:
    dp_ge_graph *graph_;
};

} // namespace ge

#endif
