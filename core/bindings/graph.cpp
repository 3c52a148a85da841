#include "../graph.hpp"

#include "arrays.hpp"

namespace robustmdp {

void bind_graph(nb::module_& m) {
    m.def("paths_to", [](Offsets sources, Array<const int32_t> targets, Array<const uint8_t> goal,
                         Array<int64_t> distance, Array<int64_t> next) {
        const auto n_states = static_cast<int64_t>(goal.size());
        require(sources.size() == targets.size(), "sources and targets must be equally long");
        require(distance.size() == goal.size() && next.size() == goal.size(),
                "goal, distance and next must have one entry per state");
        for (size_t e = 0; e < targets.size(); ++e)
            require(0 <= targets(e) && targets(e) <= n_states && 0 <= sources(e) && sources(e) < n_states,
                    "edges must lead from states to states or the end");
        const nb::gil_scoped_release release;
        paths_to(sources.data(), targets.data(), static_cast<int64_t>(targets.size()), n_states, goal.data(),
                 distance.data(), next.data());
    });
    m.def("stay_inside", [](const ModelArrays& model, bool all_pairs, Array<uint8_t> alive) {
        require(static_cast<int64_t>(alive.size()) == model.view.n_pairs, "alive must have one entry per pair");
        const nb::gil_scoped_release release;
        stay_inside(model.view, all_pairs, alive.data());
    });
}

}  // namespace robustmdp
