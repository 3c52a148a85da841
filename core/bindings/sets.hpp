// How sets and divergences appear in Python.
#pragma once

#include "../ambiguity/shared_noise.hpp"
#include "../in_place.hpp"
#include "../state_sweep.hpp"
#include "arrays.hpp"
#include "learning.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>

namespace robustmdp {

using Flags = Array<const uint8_t>;

inline void require_range(int64_t lo, int64_t hi, int64_t count) {
    require(0 <= lo && lo <= hi && hi <= count, "lo..hi must lie within the rows, or the states");
}

template <class Outcome> void require_outcome(const Outcome& outcome, const ModelArrays& model) {
    require_length(model.view.n_columns + 1, "outcome must have one entry per column and the end", outcome);
}

// What a set keeps for each transition must be that model's.
template <class Set> void require_columns(const Set& set, const ModelArrays& model) {
    if constexpr (Set::COLUMNS > 0)
        require(set.column_length() == model.indices.size(), "the set must have one entry per transition");
    if constexpr (Set::COLUMNS > 0 && Set::ADDS)
        require(model.view.added_count == 0 || static_cast<int64_t>(set.added_length()) >= model.view.n_columns,
                "the set must have one entry per column");
    if constexpr (Set::TRANSPORTS)
        require(set.moves.n_states == model.view.n_columns &&
                    (!set.moves.by_transition || set.source_count() == model.indices.size()),
                "the set must have moves from every state, or from every transition");
}

// What all calls take, checked: one level or `n_levels`, outcomes, and what the last solve left in `memory`.
template <class Set, class RowSet, class Outcome, class Memory>
Levels check_call(const RowSet& rows, const ModelArrays& model, const Numbers& levels, int64_t n_levels,
                  const Outcome& outcome, const Memory& memory) {
    const bool is_shared = levels.size() == 1;
    require(is_shared || static_cast<int64_t>(levels.size()) == n_levels,
            "levels must be one number or one per pair, or per state where actions are answered together");
    require_outcome(outcome, model);
    require_columns(rows, model);
    require(static_cast<int64_t>(memory.size()) >= Set::MEMORY * model.view.n_pairs,
            "memory must hold memory_per_row numbers per pair");
    return {levels.data(), is_shared};
}

inline Part part_of(const ModelArrays& model, double discount, const Flags& pinned,
                    const std::optional<Flags>& forbidden) {
    require_length(model.view.n_states, "pinned must have one entry per state", pinned);
    if (forbidden) require_length(model.view.n_pairs, "forbidden must have one entry per pair", *forbidden);
    return {discount, pinned.data(), forbidden ? forbidden->data() : nullptr};
}

template <class Set> nb::class_<Set> bind_set(nb::module_& m, const std::string& name) {
    const auto values = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome,
                           std::optional<Offsets> pairs, int64_t lo, int64_t hi, Array<double> memory,
                           Array<double> q) {
        const int64_t count = pairs ? static_cast<int64_t>(pairs->size()) : model.view.n_pairs;
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_range(lo, hi, count);
        require_length(count, "q must have one entry per pair", q);
        const nb::gil_scoped_release release;
        Block block = make_block<Set>(model.view);
        worst_values(set, model.view, checked, outcome.data(), PairList{pairs ? pairs->data() : nullptr}, lo, hi,
                     memory.data(), q.data(), block);
    };
    const auto sweep_rows = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, int64_t lo,
                               int64_t hi, Array<double> memory, Array<double> q, Array<double> value,
                               Array<int64_t> best) {
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_range(lo, hi, model.view.n_states);
        require_length(model.view.n_pairs, "q must have one entry per pair", q);
        require_length(model.view.n_states, "value and best must have one entry per state", value, best);
        const nb::gil_scoped_release release;
        sweep(set, model.view, checked, outcome.data(), lo, hi, memory.data(), q.data(), value.data(), best.data());
    };
    const auto in_place = [](const Set& set, const ModelArrays& model, Numbers levels, double discount, Flags pinned,
                             std::optional<Flags> forbidden, int64_t sweeps, Array<double> outcome,
                             Array<double> memory, Array<double> q) {
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_length(model.view.n_pairs, "q must have one entry per pair", q);
        const Part part = part_of(model, discount, pinned, forbidden);
        const nb::gil_scoped_release release;
        sweep_in_place(set, model.view, checked, part, sweeps, outcome.data(), memory.data(), q.data());
    };
    const auto bound = [](const Set& set, const ModelArrays& model, Numbers levels, double discount, Flags pinned,
                          std::optional<Flags> forbidden, double drift, Numbers limit, int64_t most_pairs,
                          Array<double> outcome, Array<double> memory, Array<double> q) {
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_length(model.view.n_pairs, "q must have one entry per pair", q);
        require_length(model.view.n_states, "limit must have one entry per state", limit);
        const Part part = part_of(model, discount, pinned, forbidden);
        const nb::gil_scoped_release release;
        return seek_bound(set, model.view, checked, part, drift, limit.data(), most_pairs, outcome.data(),
                          memory.data(), q.data());
    };
    const auto bracket = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, double scale,
                            int64_t lo, int64_t hi, Numbers memory, Array<double> lower, Array<double> upper) {
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_range(lo, hi, model.view.n_pairs);
        require_length(model.view.n_pairs, "lower and upper must have one entry per pair", lower, upper);
        const nb::gil_scoped_release release;
        bracket_pairs(set, model.view, checked, outcome.data(), scale, lo, hi, memory.data(), lower.data(),
                      upper.data());
    };
    const auto respond = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome,
                            std::optional<Offsets> pairs, Offsets starts, int64_t lo, int64_t hi, Numbers memory,
                            Array<double> data, Array<double> penalty, Array<double> eta,
                            std::optional<Array<int32_t>> successors) {
        const int64_t count = pairs ? static_cast<int64_t>(pairs->size()) : model.view.n_pairs;
        const Levels checked = check_call<Set>(set, model, levels, model.view.n_pairs, outcome, memory);
        require_range(lo, hi, count);
        require_length(count + 1, "starts must have one entry per pair and the end", starts);
        require_length(count, "penalty and eta must have one entry per pair", penalty, eta);
        require(starts(count) <= static_cast<int64_t>(data.size()), "data must hold all rows");
        require(!successors || successors->size() == data.size(), "successors must be as long as data");
        if constexpr (Set::TRANSPORTS)
            require(successors || !set.moves.adds, "successors must be there if the set may add some");
        const nb::gil_scoped_release release;
        respond_pairs(set, model.view, checked, outcome.data(), PairList{pairs ? pairs->data() : nullptr},
                      starts.data(), lo, hi, memory.data(), data.data(), penalty.data(), eta.data(),
                      successors ? successors->data() : nullptr);
    };
    const auto one_row = [](const Set& set, Numbers p, Numbers x, double level, Array<double> out) {
        require(p.size() >= 1 && p.size() == x.size() && p.size() == out.size(), "p, x and out must be equally long");
        if constexpr (Set::COLUMNS > 0)
            require(set.column_length() == p.size(), "the set must have one entry per successor");
        if constexpr (Set::TRANSPORTS)
            require(!set.moves.by_transition && set.moves.n_states == static_cast<int64_t>(p.size()),
                    "the set must have moves from every entry");
        return worst_case(set, p.data(), x.data(), static_cast<int64_t>(p.size()), level, out.data());
    };
    return nb::class_<Set>(m, name.c_str())
        .def_prop_ro("memory_per_row", [](const Set&) { return Set::MEMORY; })
        .def_prop_ro("added_per_successor", [](const Set&) { return Set::ADDED_PER_SUCCESSOR; })
        .def("values", values)
        .def("sweep", sweep_rows)
        .def("sweep_in_place", in_place)
        .def("seek_bound", bound)
        .def("bracket", bracket)
        .def("respond", respond, nb::arg("model"), nb::arg("levels"), nb::arg("outcome"), nb::arg("pairs").none(),
             nb::arg("starts"), nb::arg("lo"), nb::arg("hi"), nb::arg("memory"), nb::arg("data"), nb::arg("penalty"),
             nb::arg("eta"), nb::arg("successors").none() = nb::none())
        .def("worst_case", one_row);
}

// Sets of states, whose actions nature answers together.

template <class Set, class Memory>
Levels check_state_call(const Set& set, const ModelArrays& model, const Numbers& levels, const Numbers& outcome,
                        const Memory& memory, int64_t lo, int64_t hi) {
    require_range(lo, hi, model.view.n_states);
    return check_call<Set>(set.rows(), model, levels, model.view.n_states, outcome, memory);
}

template <class Set> nb::class_<Set> bind_state_set(nb::module_& m, const std::string& name) {
    const auto sweep = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, int64_t lo,
                          int64_t hi, Array<double> memory, Array<double> value, Array<double> policy) {
        const Levels checked = check_state_call(set, model, levels, outcome, memory, lo, hi);
        require_length(model.view.n_states, "value must have one entry per state", value);
        require_length(model.view.n_pairs, "policy must have one entry per pair", policy);
        const nb::gil_scoped_release release;
        sweep_states(set, model.view, checked, outcome.data(), lo, hi, memory.data(), value.data(), policy.data());
    };
    const auto evaluate = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, Numbers policy,
                             int64_t lo, int64_t hi, Numbers memory, Array<double> value) {
        const Levels checked = check_state_call(set, model, levels, outcome, memory, lo, hi);
        require_length(model.view.n_states, "value must have one entry per state", value);
        require_length(model.view.n_pairs, "policy must have one entry per pair", policy);
        const nb::gil_scoped_release release;
        evaluate_states(set, model.view, checked, outcome.data(), policy.data(), lo, hi, memory.data(), value.data());
    };
    const auto bracket = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, double scale,
                            bool given, int64_t lo, int64_t hi, Numbers memory, Array<double> policy,
                            Array<double> lower, Array<double> upper, Array<double> q) {
        const Levels checked = check_state_call(set, model, levels, outcome, memory, lo, hi);
        require_length(model.view.n_states, "lower and upper must have one entry per state", lower, upper);
        require_length(model.view.n_pairs, "policy and q must have one entry per pair", policy, q);
        const nb::gil_scoped_release release;
        bracket_states(set, model.view, checked, outcome.data(), scale, given, lo, hi, memory.data(), policy.data(),
                       lower.data(), upper.data(), q.data());
    };
    const auto respond = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, bool given,
                            Numbers policy, Offsets starts, int64_t lo, int64_t hi, Numbers memory, Array<double> data,
                            Array<double> penalty) {
        const Levels checked = check_state_call(set, model, levels, outcome, memory, lo, hi);
        require_length(model.view.n_pairs, "policy and penalty must have one entry per pair", policy, penalty);
        require(starts.size() == penalty.size() + 1 && starts(penalty.size()) <= static_cast<int64_t>(data.size()),
                "data must hold all rows");
        const nb::gil_scoped_release release;
        respond_states(set, model.view, checked, outcome.data(), given, policy.data(), starts.data(), lo, hi,
                       memory.data(), data.data(), penalty.data());
    };
    return nb::class_<Set>(m, name.c_str())
        .def_prop_ro("memory_per_row", [](const Set&) { return Set::MEMORY; })
        .def("sweep", sweep)
        .def("evaluate", evaluate)
        .def("bracket", bracket)
        .def("respond", respond);
}

// States whose actions share the noise, which this set of rows is about.
template <class Set> void bind_noise_set(nb::module_& m, const std::string& name) {
    bind_state_set<SharedNoise<Set>>(m, "Noise" + name);
    m.def("shared_noise", [](const Set& rows) { return SharedNoise<Set>(rows); });
}

// The least budget with which nature brings E x down to `target`: infinite below the minimum of x.
template <class P> double project_row(const P& set, Numbers p, Numbers x, double target) {
    require(p.size() >= 1 && p.size() == x.size(), "p and x must be equally long");
    const Rows<double> row = make_rows<double>(p.data(), x.data(), static_cast<int64_t>(p.size()), 1);
    const double t = target - row.lowest;
    if (t >= row.mean_rise) return 0.0;
    if (t <= 0.0) return t < 0.0 ? INFINITE : set.project_to_vertex(row).cost;
    std::vector<double> scratch(row.length);
    return set.project_alone(row, t, scratch.data()).cost;
}

// A divergence D with its penalty and its ball: of rows, of states that share a budget or a price, where P projects the
// rows, and of states that share the noise. `price_of(divergence)` is what learners need.
template <class D, class Penalty, class Ball, class P, class PriceOf>
nb::class_<D> bind_sets_of(nb::module_& m, const std::string& name, PriceOf price_of) {
    bind_set<Penalty>(m, "Penalized" + name);
    bind_set<Ball>(m, "Constrained" + name);
    bind_noise_set<Penalty>(m, "Penalized" + name);
    bind_noise_set<Ball>(m, "Constrained" + name);
    bind_state_set<SharedBudget<P, false>>(m, "StateConstrained" + name);
    bind_state_set<SharedBudget<P, true>>(m, "StatePenalized" + name);
    m.def("state_constrained", [](const D& divergence) { return SharedBudget<P, false>(P(divergence)); });
    m.def("state_penalized", [](const D& divergence) { return SharedBudget<P, true>(P(divergence)); });
    nb::class_<D> bound(m, name.c_str());
    bound.def("penalized", [](const D& divergence) { return Penalty(divergence); })
        .def("constrained", [](const D& divergence) { return Ball(divergence); })
        .def("project", [](const D& divergence, Numbers p, Numbers x, double target) {
            return project_row(P(divergence), p, x, target);
        });
    bind_learners(bound, price_of);
    return bound;
}

// f* at one y of the normal form; f*' where `derivative`.
template <class D> double conjugate_at(const D& divergence, double y, bool derivative) {
    if (y > divergence.edge) return INFINITE;
    if (y == divergence.edge) return derivative ? INFINITE : divergence.conjugate_at_edge();
    if (y == -INFINITE) return derivative ? 0.0 : -divergence.f(0.0);
    const bool at_edge = y > 0.5 * divergence.edge;
    const double u = at_edge ? divergence.edge - y : -y;
    const Tilt<double> tilt =
        magnitude(y) <= divergence.reach ? divergence.near.at(1.0, u) : divergence.at(at_edge ? 0.0 : 1.0, u);
    return derivative ? tilt.slope : tilt.excess + y;
}

// A smooth divergence: f, f* and f*' of arrays as well.
template <class D, class... Parameters> void bind_divergence(nb::module_& m, const std::string& name) {
    const auto generator = [](const D& divergence, Numbers t, Array<double> out) {
        require(t.size() == out.size(), "t and out must be equally long");
        for (size_t i = 0; i < t.size(); ++i) out(i) = t(i) < 0.0 ? INFINITE : t(i) == t(i) ? divergence.f(t(i)) : t(i);
    };
    const auto conjugate = [](const D& divergence, Numbers y, Array<double> out, bool derivative) {
        require(y.size() == out.size(), "y and out must be equally long");
        for (size_t i = 0; i < y.size(); ++i) out(i) = conjugate_at(divergence, y(i), derivative);
    };
    const auto price_of = [](const D& divergence) { return SmoothPrice<D>{divergence}; };
    bind_sets_of<D, Penalized<D>, Constrained<D>, SmoothProjection<D>>(m, name, price_of)
        .def(nb::init<Parameters...>())
        .def("f", generator)
        .def("conjugate", conjugate)
        .def_prop_ro("k", [](const D& divergence) { return divergence.k; })
        .def_prop_ro("renormalisation", [](const D&) { return D::RENORMALISATION; });
}

}  // namespace robustmdp
