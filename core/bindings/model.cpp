#include "../chain.hpp"
#include "../dual_ascent.hpp"
#include "../sweep.hpp"
#include "arrays.hpp"

#include <nanobind/stl/tuple.h>

namespace robustmdp {

namespace {

Chain chain_of(const Offsets& indptr, const Array<const int32_t>& indices, const Numbers& data) {
    require(indptr.size() >= 2 && indices.size() == data.size(), "indices and data must be equally long");
    return {indptr.data(), indices.data(), data.data(), static_cast<int64_t>(indptr.size()) - 1};
}

void bind_chains(nb::module_& m) {
    m.def("chain_rows",
          [](const ModelArrays& model, Offsets pairs, Numbers weights, Offsets starts, int64_t lo, int64_t hi,
             Array<int32_t> indices, Array<double> data, Numbers penalty, Array<double> cost) {
              const auto count = static_cast<int64_t>(pairs.size());
              require_length(count, "all arrays must have one entry per pair", weights, penalty, cost);
              require(starts.size() == pairs.size() + 1 && indices.size() == data.size() && 0 <= lo && hi <= count,
                      "all arrays must have one entry per pair");
              const nb::gil_scoped_release release;
              chain_rows(model.view, pairs.data(), weights.data(), starts.data(), lo, hi, indices.data(), data.data(),
                         penalty.data(), cost.data());
          });
    m.def(
        "residual_product",
        [](Offsets indptr, Array<const int32_t> indices, Numbers data, double discount, Numbers x, Array<double> out,
           int64_t first) {
            const Chain chain = chain_of(indptr, indices, data);
            require(first >= 0 && first + chain.n_states < static_cast<int64_t>(x.size()),
                    "x must have one entry per column and the end");
            require_length(chain.n_states, "out must have one entry per state", out);
            const nb::gil_scoped_release release;
            residual_product(chain, discount, x.data(), first, out.data());
        },
        nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("discount"), nb::arg("x"), nb::arg("out"),
        nb::arg("first") = 0);
    m.def("dot", [](Numbers a, Numbers b) {
        require(a.size() == b.size(), "a and b must be equally long");
        return dot(a.data(), b.data(), static_cast<int64_t>(a.size()));
    });
    m.def("chain_sweeps", [](Offsets indptr, Array<const int32_t> indices, Numbers data, Numbers cost, double discount,
                             bool can_end, Array<double> v, Array<double> w, double target, int64_t limit) {
        const Chain chain = chain_of(indptr, indices, data);
        require_length(chain.n_states + 1, "v and w must have one entry per state and the end", v, w);
        require_length(chain.n_states, "cost must have one entry per state", cost);
        const nb::gil_scoped_release release;
        return chain_sweeps(chain, cost.data(), discount, can_end, v.data(), w.data(), target, limit);
    });
    m.def("climb_chain", [](Offsets indptr, Array<const int32_t> indices, Numbers data, Numbers cost, double discount,
                            bool can_end, Array<double> v, double target, int64_t limit, bool by_graph) {
        const Chain chain = chain_of(indptr, indices, data);
        require_length(chain.n_states + 1, "v must have one entry per state and the end", v);
        require_length(chain.n_states, "cost must have one entry per state", cost);
        const nb::gil_scoped_release release;
        return climb_chain(chain, cost.data(), discount, can_end, v.data(), target, limit, by_graph);
    });
    m.def("gauss_seidel", [](const ModelArrays& model, double discount, bool backwards, Array<double> v) {
        require_length(model.view.n_states + 1, "v must have one entry per state and the end", v);
        const nb::gil_scoped_release release;
        gauss_seidel(model.view, discount, backwards, v.data());
    });
}

void bind_graphs(nb::module_& m) {
    m.def("paths_to", [](Offsets sources, Array<const int32_t> targets, Array<const uint8_t> goal,
                         Array<int64_t> distance, Array<int64_t> next) {
        const auto n_states = static_cast<int64_t>(goal.size());
        require(sources.size() == targets.size(), "sources and targets must be equally long");
        require_length(n_states, "goal, distance and next must have one entry per state", distance, next);
        for (size_t e = 0; e < targets.size(); ++e)
            require(0 <= targets(e) && targets(e) <= n_states && 0 <= sources(e) && sources(e) < n_states,
                    "edges must lead from states to states or the end");
        const nb::gil_scoped_release release;
        paths_to(sources.data(), targets.data(), static_cast<int64_t>(targets.size()), n_states, goal.data(),
                 distance.data(), next.data());
    });
    m.def("stay_inside", [](const ModelArrays& model, bool all_pairs, Array<uint8_t> alive) {
        require_length(model.view.n_pairs, "alive must have one entry per pair", alive);
        const nb::gil_scoped_release release;
        stay_inside(model.view, all_pairs, alive.data());
    });
}

template <class F>
void ascend_pairs(const ModelArrays& model, const Ascent& settings, Numbers weights, Numbers v, Array<double> eta,
                  Array<double> q) {
    require_length(model.view.n_pairs, "weights, eta and q must have one entry per pair", weights, eta, q);
    require_length(model.view.n_states + 1, "v must have one entry per state and the end", v);
    const nb::gil_scoped_release release;
    ascend<F>(model.view, settings, weights.data(), v.data(), eta.data(), q.data());
}

// out = f(x), four numbers at a time as in sweeps; the rest one by one, with the same bits.
template <class Function> void bind_function(nb::module_& m, const char* name, Function f) {
    m.def(name, [f](Numbers x, Array<double> out) {
        require(x.size() == out.size(), "x and out must be equally long");
        size_t i = 0;
        for (; i + WIDTH <= x.size(); i += WIDTH) store(out.data() + i, f(load<Lanes>(x.data() + i)));
        for (; i < x.size(); ++i) out(i) = f(x(i));
    });
}

}  // namespace

void bind_model(nb::module_& m) {
    nb::class_<ModelArrays>(m, "Model")
        .def(nb::init<Offsets, Array<const int32_t>, Numbers, Numbers, Offsets, int64_t, bool, int64_t>(),
             nb::arg("indptr"), nb::arg("indices"), nb::arg("probabilities"), nb::arg("rewards"), nb::arg("state_ptr"),
             nb::arg("longest_row"), nb::arg("rewards_on_successors"), nb::arg("n_columns") = -1)
        .def_ro("indptr", &ModelArrays::indptr)
        .def_ro("indices", &ModelArrays::indices)
        .def_ro("probabilities", &ModelArrays::probabilities)
        .def_ro("rewards", &ModelArrays::rewards)
        .def_ro("state_ptr", &ModelArrays::state_ptr)
        .def("add_successors", &ModelArrays::add_successors)
        .def_prop_rw(
            "sign", [](const ModelArrays& model) { return model.view.sign; },
            [](ModelArrays& model, double sign) { model.view.sign = sign; })
        .def_prop_ro("rewards_on_successors",
                     [](const ModelArrays& model) { return model.view.rewards_on_successors; });
    m.def("best_actions", [](const ModelArrays& model, Numbers q, Array<double> value, Array<int64_t> best) {
        require_length(model.view.n_pairs, "q must have one entry per pair", q);
        require_length(model.view.n_states, "value and best must have one entry per state", value, best);
        best_actions(model.view, q.data(), 0, model.view.n_states, value.data(), best.data());
    });
    bind_chains(m);
    bind_graphs(m);
    nb::class_<Ascent>(m, "Ascent")
        .def(nb::init<int64_t, double, bool, double, double, double>(), nb::arg("inner_steps"), nb::arg("step"),
             nb::arg("warm_start"), nb::arg("discount"), nb::arg("lowest_value"), nb::arg("highest_value"));
    m.def("ascend_chi_square", &ascend_pairs<PaperChiSquare>);
    m.def("ascend_kullback_leibler", &ascend_pairs<PaperKullbackLeibler>);
    bind_function(m, "exponential", [](auto y) { return exponential(y); });
    bind_function(m, "exponential_less_one", [](auto y) { return exponential_less_one(y); });
    bind_function(m, "logarithm", [](auto y) { return logarithm(y); });
}

}  // namespace robustmdp
