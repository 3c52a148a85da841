// How sets of states, whose actions nature answers together, appear in Python.
#pragma once

#include "../state_sweep.hpp"
#include "arrays.hpp"

#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

namespace robustmdp {

// What every call is about, checked.
template <class Set> struct StateCall {
    const Set& set;
    const ModelArrays& model;
    StateLevels levels;
    const double* outcome;

    StateCall(const Set& set, const ModelArrays& model, const Numbers& levels, const Numbers& outcome, int64_t lo,
              int64_t hi, size_t memory)
        : set(set), model(model), levels{levels.data(), levels.size() == 1}, outcome(outcome.data()) {
        const int64_t n_states = model.view.n_states;
        require(levels.size() == 1 || static_cast<int64_t>(levels.size()) == n_states,
                "levels must be one number or one per state");
        require(static_cast<int64_t>(outcome.size()) == model.view.n_columns + 1,
                "outcome must have one entry per column and the end");
        require(0 <= lo && lo <= hi && hi <= n_states, "lo..hi must lie within the states");
        require(static_cast<int64_t>(memory) >= Set::MEMORY * model.view.n_pairs,
                "memory must hold memory_per_row numbers per pair");
        if constexpr (requires { set.rows().column_length(); })
            require(set.rows().column_length() == model.indices.size(), "the set must have one entry per transition");
    }

    void require_pairs(size_t size) const {
        require(static_cast<int64_t>(size) == model.view.n_pairs, "policy, q and penalty must have one entry per pair");
    }
    void require_states(size_t size) const {
        require(static_cast<int64_t>(size) == model.view.n_states, "values and bounds must have one entry per state");
    }
};

template <class Set> nb::class_<Set> bind_state_set(nb::module_& m, const std::string& name) {
    const auto sweep = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, int64_t lo,
                          int64_t hi, Array<double> memory, Array<double> value, Array<double> policy) {
        const StateCall<Set> call(set, model, levels, outcome, lo, hi, memory.size());
        call.require_states(value.size());
        call.require_pairs(policy.size());
        const nb::gil_scoped_release release;
        sweep_states(set, model.view, call.levels, call.outcome, lo, hi, memory.data(), value.data(), policy.data());
    };
    const auto evaluate = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, Numbers policy,
                             int64_t lo, int64_t hi, Numbers memory, Array<double> value) {
        const StateCall<Set> call(set, model, levels, outcome, lo, hi, memory.size());
        call.require_states(value.size());
        call.require_pairs(policy.size());
        const nb::gil_scoped_release release;
        evaluate_states(set, model.view, call.levels, call.outcome, policy.data(), lo, hi, memory.data(), value.data());
    };
    const auto bracket = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, double scale,
                            bool given, int64_t lo, int64_t hi, Numbers memory, Array<double> policy,
                            Array<double> lower, Array<double> upper, Array<double> q) {
        const StateCall<Set> call(set, model, levels, outcome, lo, hi, memory.size());
        call.require_states(lower.size());
        call.require_states(upper.size());
        call.require_pairs(policy.size());
        call.require_pairs(q.size());
        const nb::gil_scoped_release release;
        bracket_states(set, model.view, call.levels, call.outcome, scale, given, lo, hi, memory.data(), policy.data(),
                       lower.data(), upper.data(), q.data());
    };
    const auto respond = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, bool given,
                            Numbers policy, Offsets starts, int64_t lo, int64_t hi, Numbers memory, Array<double> data,
                            Array<double> penalty) {
        const StateCall<Set> call(set, model, levels, outcome, lo, hi, memory.size());
        call.require_pairs(policy.size());
        call.require_pairs(penalty.size());
        require(starts.size() == penalty.size() + 1 && starts(penalty.size()) <= static_cast<int64_t>(data.size()),
                "data must hold all rows");
        const nb::gil_scoped_release release;
        respond_states(set, model.view, call.levels, call.outcome, given, policy.data(), starts.data(), lo, hi,
                       memory.data(), data.data(), penalty.data());
    };
    return nb::class_<Set>(m, name.c_str())
        .def_prop_ro("memory_per_row", [](const Set&) { return Set::MEMORY; })
        .def("sweep", sweep)
        .def("evaluate", evaluate)
        .def("bracket", bracket)
        .def("respond", respond);
}

// Both forms of a divergence D, whose rows P projects.
template <class D, class P> void bind_state_divergence(nb::module_& m, const std::string& name) {
    bind_state_set<SharedBudget<P, false>>(m, "StateConstrained" + name);
    bind_state_set<SharedBudget<P, true>>(m, "StatePenalized" + name);
    m.def("state_constrained", [](const D& divergence) { return SharedBudget<P, false>(P(divergence)); });
    m.def("state_penalized", [](const D& divergence) { return SharedBudget<P, true>(P(divergence)); });
}

}  // namespace robustmdp
