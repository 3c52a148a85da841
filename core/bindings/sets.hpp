// How a set and its divergence appear in Python.
#pragma once

#include "../ambiguity/projection.hpp"
#include "../in_place.hpp"
#include "../response.hpp"
#include "arrays.hpp"
#include "learning.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

namespace robustmdp {

inline Levels levels_of(const Numbers& levels, const ModelArrays& model) {
    require(levels.size() == 1 || static_cast<int64_t>(levels.size()) == model.view.n_pairs,
            "levels must be one number or one per pair");
    return {levels.data(), levels.size() == 1};
}

template <class Outcome> void require_outcome(const Outcome& outcome, const ModelArrays& model) {
    require(static_cast<int64_t>(outcome.size()) == model.view.n_columns + 1,
            "outcome must have one entry per column and the end");
}

inline void require_range(int64_t lo, int64_t hi, int64_t count) {
    require(0 <= lo && lo <= hi && hi <= count, "lo..hi must lie within the rows");
}

template <class Set> void require_memory(size_t size, const ModelArrays& model) {
    require(static_cast<int64_t>(size) >= Set::MEMORY * model.view.n_pairs,
            "memory must hold memory_per_row numbers per pair");
}

// What a set keeps for each transition must be that model's.
template <class Set> void require_columns(const Set& set, const ModelArrays& model) {
    if constexpr (columns_of<Set>() > 0)
        require(set.column_length() == model.indices.size(), "the set must have one entry per transition");
    if constexpr (columns_of<Set>() > 0 && adds_successors<Set>())
        require(model.view.added_count == 0 || static_cast<int64_t>(set.added_length()) >= model.view.n_columns,
                "the set must have one entry per column");
    if constexpr (transports_mass<Set>())
        require(set.moves.n_states == model.view.n_columns &&
                    (!set.moves.by_transition || set.source_count() == model.indices.size()),
                "the set must have moves from every state, or from every transition");
}

template <class Set> constexpr int64_t added_per_successor() {
    if constexpr (transports_mass<Set>()) return Set::ADDED_PER_SUCCESSOR;
    return 0;
}

template <class Set>
void require_in_place(const Set& set, const ModelArrays& model, const Array<double>& outcome,
                      const Array<double>& memory, const Array<double>& q) {
    require_outcome(outcome, model);
    require_columns(set, model);
    require_memory<Set>(memory.size(), model);
    require(static_cast<int64_t>(q.size()) == model.view.n_pairs, "q must have one entry per pair");
}

inline Part part_of(const ModelArrays& model, double discount, const Array<const uint8_t>& pinned,
                    const std::optional<Array<const uint8_t>>& forbidden) {
    require(static_cast<int64_t>(pinned.size()) == model.view.n_states, "pinned must have one entry per state");
    require(!forbidden || static_cast<int64_t>(forbidden->size()) == model.view.n_pairs,
            "forbidden must have one entry per pair");
    return {discount, pinned.data(), forbidden ? forbidden->data() : nullptr};
}

template <class Set> nb::class_<Set> bind_set(nb::module_& m, const char* name) {
    const auto values = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome,
                           std::optional<Offsets> pairs, int64_t lo, int64_t hi, Array<double> memory,
                           Array<double> q) {
        const int64_t count = pairs ? static_cast<int64_t>(pairs->size()) : model.view.n_pairs;
        require_range(lo, hi, count);
        require_outcome(outcome, model);
        require_columns(set, model);
        require_memory<Set>(memory.size(), model);
        require(static_cast<int64_t>(q.size()) == count, "q must have one entry per pair");
        const nb::gil_scoped_release release;
        Block block = make_block<Set>(model.view);
        worst_values(set, model.view, levels_of(levels, model), outcome.data(),
                     PairList{pairs ? pairs->data() : nullptr}, lo, hi, memory.data(), q.data(), block);
    };
    const auto sweep_states = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, int64_t lo,
                                 int64_t hi, Array<double> memory, Array<double> q, Array<double> value,
                                 Array<int64_t> best) {
        require_range(lo, hi, model.view.n_states);
        require_outcome(outcome, model);
        require_columns(set, model);
        require_memory<Set>(memory.size(), model);
        require(static_cast<int64_t>(q.size()) == model.view.n_pairs, "q must have one entry per pair");
        require(static_cast<int64_t>(value.size()) == model.view.n_states && best.size() == value.size(),
                "value and best must have one entry per state");
        const nb::gil_scoped_release release;
        sweep(set, model.view, levels_of(levels, model), outcome.data(), lo, hi, memory.data(), q.data(), value.data(),
              best.data());
    };
    const auto in_place = [](const Set& set, const ModelArrays& model, Numbers levels, double discount,
                             Array<const uint8_t> pinned, std::optional<Array<const uint8_t>> forbidden, int64_t sweeps,
                             Array<double> outcome, Array<double> memory, Array<double> q) {
        require_in_place<Set>(set, model, outcome, memory, q);
        const Part part = part_of(model, discount, pinned, forbidden);
        const nb::gil_scoped_release release;
        sweep_in_place(set, model.view, levels_of(levels, model), part, sweeps, outcome.data(), memory.data(),
                       q.data());
    };
    const auto bound = [](const Set& set, const ModelArrays& model, Numbers levels, double discount,
                          Array<const uint8_t> pinned, std::optional<Array<const uint8_t>> forbidden, double drift,
                          Numbers limit, int64_t most_pairs, Array<double> outcome, Array<double> memory,
                          Array<double> q) {
        require_in_place<Set>(set, model, outcome, memory, q);
        require(limit.size() == pinned.size(), "limit must have one entry per state");
        const Part part = part_of(model, discount, pinned, forbidden);
        const nb::gil_scoped_release release;
        const Sought sought = seek_bound(set, model.view, levels_of(levels, model), part, drift, limit.data(),
                                         most_pairs, outcome.data(), memory.data(), q.data());
        return std::make_tuple(sought.left, sought.visited);
    };
    const auto bracket = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome, double scale,
                            int64_t lo, int64_t hi, Numbers memory, Array<double> lower, Array<double> upper) {
        require_range(lo, hi, model.view.n_pairs);
        require_outcome(outcome, model);
        require_columns(set, model);
        require_memory<Set>(memory.size(), model);
        require(static_cast<int64_t>(lower.size()) == model.view.n_pairs && upper.size() == lower.size(),
                "lower and upper must have one entry per pair");
        const nb::gil_scoped_release release;
        bracket_pairs(set, model.view, levels_of(levels, model), outcome.data(), scale, lo, hi, memory.data(),
                      lower.data(), upper.data());
    };
    const auto respond = [](const Set& set, const ModelArrays& model, Numbers levels, Numbers outcome,
                            std::optional<Offsets> pairs, Offsets starts, int64_t lo, int64_t hi, Numbers memory,
                            Array<double> data, Array<double> penalty, Array<double> eta,
                            std::optional<Array<int32_t>> successors) {
        const int64_t count = pairs ? static_cast<int64_t>(pairs->size()) : model.view.n_pairs;
        require_range(lo, hi, count);
        require_outcome(outcome, model);
        require_columns(set, model);
        require_memory<Set>(memory.size(), model);
        require(static_cast<int64_t>(starts.size()) == count + 1 && penalty.size() + 1 == starts.size() &&
                    eta.size() == penalty.size(),
                "starts, penalty and eta must have one entry per pair");
        require(starts(count) <= static_cast<int64_t>(data.size()), "data must hold all rows");
        require(!successors || successors->size() == data.size(), "successors must be as long as data");
        if constexpr (transports_mass<Set>())
            require(successors || !set.moves.adds, "successors must be there if the set may add some");
        const nb::gil_scoped_release release;
        respond_pairs(set, model.view, levels_of(levels, model), outcome.data(),
                      PairList{pairs ? pairs->data() : nullptr}, starts.data(), lo, hi, memory.data(), data.data(),
                      penalty.data(), eta.data(), successors ? successors->data() : nullptr);
    };
    const auto one_row = [](const Set& set, Numbers p, Numbers x, double level, Array<double> out) {
        require(p.size() >= 1 && p.size() == x.size() && p.size() == out.size(), "p, x and out must be equally long");
        if constexpr (columns_of<Set>() > 0)
            require(set.column_length() == p.size(), "the set must have one entry per successor");
        if constexpr (transports_mass<Set>())
            require(!set.moves.by_transition && set.moves.n_states == static_cast<int64_t>(p.size()),
                    "the set must have moves from every entry");
        const Answer answer = worst_case(set, p.data(), x.data(), static_cast<int64_t>(p.size()), level, out.data());
        return std::make_tuple(answer.value, answer.gap, answer.eta, answer.weight);
    };
    return nb::class_<Set>(m, name)
        .def_prop_ro("memory_per_row", [](const Set&) { return Set::MEMORY; })
        .def("values", values, nb::arg("model"), nb::arg("levels"), nb::arg("outcome"), nb::arg("pairs").none(),
             nb::arg("lo"), nb::arg("hi"), nb::arg("memory"), nb::arg("q"))
        .def("sweep", sweep_states)
        .def("sweep_in_place", in_place, nb::arg("model"), nb::arg("levels"), nb::arg("discount"), nb::arg("pinned"),
             nb::arg("forbidden").none(), nb::arg("sweeps"), nb::arg("outcome"), nb::arg("memory"), nb::arg("q"))
        .def("seek_bound", bound, nb::arg("model"), nb::arg("levels"), nb::arg("discount"), nb::arg("pinned"),
             nb::arg("forbidden").none(), nb::arg("drift"), nb::arg("limit"), nb::arg("most_pairs"), nb::arg("outcome"),
             nb::arg("memory"), nb::arg("q"))
        .def("bracket", bracket)
        .def("respond", respond, nb::arg("model"), nb::arg("levels"), nb::arg("outcome"), nb::arg("pairs").none(),
             nb::arg("starts"), nb::arg("lo"), nb::arg("hi"), nb::arg("memory"), nb::arg("data"), nb::arg("penalty"),
             nb::arg("eta"), nb::arg("successors").none() = nb::none())
        .def_prop_ro("added_per_successor", [](const Set&) { return added_per_successor<Set>(); })
        .def("worst_case", one_row);
}

// kappa of one row: infinite below its minimum.
template <class P> double project_row(const P& set, Numbers p, Numbers x, double target) {
    require(p.size() >= 1 && p.size() == x.size(), "p and x must be equally long");
    const Rows<double> row = make_rows<double>(p.data(), x.data(), static_cast<int64_t>(p.size()), 1);
    const double t = target - row.lowest;
    if (t >= row.mean_rise) return 0.0;
    if (t <= 0.0) return t < 0.0 ? INFINITE : set.project_to_vertex(row).cost;
    std::vector<double> scratch(row.length);
    return set.project_alone(row, t, scratch.data()).cost;
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

// f, f* and f*' of arrays, and the two sets that a divergence makes.
template <class D, class... Parameters> void bind_divergence(nb::module_& m, const std::string& name) {
    const auto generator = [](const D& divergence, Numbers t, Array<double> out) {
        require(t.size() == out.size(), "t and out must be equally long");
        for (size_t i = 0; i < t.size(); ++i) out(i) = t(i) < 0.0 ? INFINITE : t(i) == t(i) ? divergence.f(t(i)) : t(i);
    };
    const auto conjugate = [](const D& divergence, Numbers y, Array<double> out, bool derivative) {
        require(y.size() == out.size(), "y and out must be equally long");
        for (size_t i = 0; i < y.size(); ++i) out(i) = conjugate_at(divergence, y(i), derivative);
    };
    bind_set<Penalized<D>>(m, ("Penalized" + name).c_str());
    bind_set<Constrained<D>>(m, ("Constrained" + name).c_str())
        .def("project", [](const Constrained<D>& set, Numbers p, Numbers x, double target) {
            return project_row(SmoothProjection<D>(set.divergence), p, x, target);
        });
    nb::class_<D> bound(m, name.c_str());
    bound.def(nb::init<Parameters...>())
        .def("f", generator)
        .def("conjugate", conjugate)
        .def("penalized", [](const D& divergence) { return Penalized<D>{divergence}; })
        .def("constrained", [](const D& divergence) { return Constrained<D>(divergence); });
    bound.def_prop_ro("k", [](const D& divergence) { return divergence.k; });
    bound.def_prop_ro("renormalisation", [](const D&) { return D::RENORMALISATION; });
    bind_learners(bound, [](const D& divergence) { return SmoothPrice<D>{divergence}; });
}

}  // namespace robustmdp
