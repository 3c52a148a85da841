#include "../ambiguity/wasserstein.hpp"

#include "sets.hpp"

#include <algorithm>

namespace robustmdp {

namespace {

struct WassersteinArrays : Wasserstein {
    Offsets indptr;
    Array<const int32_t> states;
    Numbers costs;
    Array<const uint8_t> receives;

    WassersteinArrays(Offsets indptr, Array<const int32_t> states, Numbers costs, Array<const uint8_t> receives,
                      bool by_transition)
        : indptr(indptr), states(states), costs(costs), receives(receives) {
        require(by_transition || indptr.size() == receives.size() + 1, "there must be one range of moves per state");
        require(states.size() == costs.size(), "there must be one cost per move");
        const auto n_states = static_cast<int64_t>(receives.size());
        int64_t most = 0;
        for (size_t i = 0; i + 1 < indptr.size(); ++i) most = std::max(most, indptr(i + 1) - indptr(i));
        const int64_t count = std::count(receives.data(), receives.data() + n_states, 1);
        const bool everywhere = count == n_states;
        moves = {indptr.data(), states.data(), costs.data(), receives.data(), n_states,
                 most,          by_transition, everywhere,   count > 0};
        by_state.resize(everywhere && !by_transition ? n_states + 1 : 0);
    }
    size_t source_count() const { return indptr.size() - 1; }
};

// Each row of moves by rising costs, then states.
void sort_moves(Offsets indptr, Array<int32_t> states, Array<double> costs) {
    require(states.size() == costs.size(), "states and costs must be equally long");
    const nb::gil_scoped_release release;
    std::vector<std::pair<double, int32_t>> row;
    for (size_t i = 0; i + 1 < indptr.size(); ++i) {
        const int64_t first = indptr(i), last = indptr(i + 1);
        row.clear();
        for (int64_t at = first; at < last; ++at) row.emplace_back(costs(at), states(at));
        std::sort(row.begin(), row.end());
        for (int64_t at = first; at < last; ++at)
            costs(at) = row[at - first].first, states(at) = row[at - first].second;
    }
}

}  // namespace

void bind_wasserstein(nb::module_& m) {
    bind_set<WassersteinArrays>(m, "Wasserstein")
        .def(nb::init<Offsets, Array<const int32_t>, Numbers, Array<const uint8_t>, bool>())
        .def("prepare", [](WassersteinArrays& set, const ModelArrays& model, Numbers outcome, int64_t lo, int64_t hi) {
            require_range(lo, hi, model.view.n_states);
            require_outcome(outcome, model);
            require_columns(set, model);
            const nb::gil_scoped_release release;
            set.prepare(model.view, outcome.data(), lo, hi);
        });
    m.def("sort_moves", &sort_moves);
}

}  // namespace robustmdp
