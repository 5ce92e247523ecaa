/*
 * ge_ir_build.h - compiles graphs into models that aclmdlLoadFromMem takes. aclGetRecentErrMsg says why something
 * failed.
 *
 * aclgrphBuildInitialize comes first, in any thread and also in a child of fork; aclgrphBuildFinalize forgets the
 * options.
 */
#ifndef DOPPEL_GE_GE_IR_BUILD_H
#define DOPPEL_GE_GE_IR_BUILD_H

#include <map>
#include <memory>
#include <string>

#include "ge/ge_api_types.h"
#include "graph/graph.h"

namespace ge {

struct ModelBufferData {
    std::shared_ptr<uint8_t> data;
    uint64_t length = 0;
};

namespace doppel {

inline const char *TextOf(const AscendString &text) {
    return text.GetString();
}
inline const char *TextOf(const std::string &text) {
    return text.c_str();
}

template <class Map>
void Split(const Map &options, std::vector<const char *> &names, std::vector<const char *> &values) {
    for (const auto &option : options) {
        names.push_back(TextOf(option.first));
        values.push_back(TextOf(option.second));
    }
}
template <class Map>
graphStatus Initialize(const Map &options) {
    std::vector<const char *> names, values;
    Split(options, names, values);
    return dp_ge_initialize(names.data(), values.data(), names.size());
}
template <class Map>
graphStatus Build(const Graph &graph, const Map &options, ModelBufferData &model) {
    std::vector<const char *> names, values;
    void *bytes = nullptr;
    size_t size = 0;
    Split(options, names, values);
    graphStatus status = dp_ge_build(graph.ToC(), names.data(), values.data(), names.size(), &bytes, &size);
    if (status == GRAPH_SUCCESS) {
        model.data = std::shared_ptr<uint8_t>(static_cast<uint8_t *>(bytes), dp_ge_free);
        model.length = size;
    }
    return status;
}

} // namespace doppel

inline graphStatus aclgrphBuildInitialize(std::map<AscendString, AscendString> &global_options) {
    return doppel::Initialize(global_options);
}
inline graphStatus aclgrphBuildInitialize(std::map<std::string, std::string> global_options) {
    return doppel::Initialize(global_options);
}
inline void aclgrphBuildFinalize() {
    dp_ge_finalize();
}

inline graphStatus aclgrphBuildModel(const Graph &graph, const std::map<AscendString, AscendString> &build_options,
                                     ModelBufferData &model) {
    return doppel::Build(graph, build_options, model);
}
inline graphStatus aclgrphBuildModel(const Graph &graph, const std::map<std::string, std::string> &build_options,
                                     ModelBufferData &model) {
    return doppel::Build(graph, build_options, model);
}

inline graphStatus aclgrphSaveModel(const char *output_file, const ModelBufferData &model) {
    return dp_ge_save(output_file, model.data.get(), model.length);
}
inline graphStatus aclgrphSaveModel(const std::string &output_file, const ModelBufferData &model) {
    return aclgrphSaveModel(output_file.c_str(), model);
}

/* The graph as text, into the file; len is the length of its name. */
inline graphStatus aclgrphDumpGraph(const Graph &graph, const char *file, const size_t len) {
    return dp_ge_dump(graph.ToC(), file, len);
}

} // namespace ge

#endif
