#include "../ordered_chain.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "../dual_ascent.hpp"
#include "../sweep.hpp"
#include "arrays.hpp"

namespace robustmdp {

namespace {

Chain chain_of(const Offsets& indptr, const Array<const int32_t>& indices, const Numbers& data) {
    require(indptr.size() >= 2 && indices.size() == data.size(), "indices and data must be equally long");
    return {indptr.data(), indices.data(), data.data(), static_cast<int64_t>(indptr.size()) - 1};
}

template <class F>
void ascend_pairs(const ModelArrays& model, const Ascent& settings, Numbers weights, Numbers v, Array<double> eta,
                  Array<double> q) {
    const auto n_pairs = static_cast<size_t>(model.view.n_pairs);
    require(weights.size() == n_pairs && eta.size() == n_pairs && q.size() == n_pairs &&
                static_cast<int64_t>(v.size()) == model.view.n_states + 1,
            "weights, eta and q must have one entry per pair, v one per state and the end");
    const nb::gil_scoped_release release;
    ascend<F>(model.view, settings, weights.data(), v.data(), eta.data(), q.data());
}

}  // namespace

void bind_chain(nb::module_& m) {
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
        const auto n_states = static_cast<size_t>(model.view.n_states);
        require(static_cast<int64_t>(q.size()) == model.view.n_pairs && value.size() == n_states &&
                    best.size() == n_states,
                "q must have one entry per pair, value and best one per state");
        best_actions(model.view, q.data(), 0, model.view.n_states, value.data(), best.data());
    });
    m.def("chain_rows",
          [](const ModelArrays& model, Offsets pairs, Numbers weights, Offsets starts, int64_t lo, int64_t hi,
             Array<int32_t> indices, Array<double> data, Numbers penalty, Array<double> cost) {
              require(pairs.size() + 1 == starts.size() && weights.size() == pairs.size() &&
                          penalty.size() == pairs.size() && cost.size() == pairs.size() &&
                          indices.size() == data.size() && 0 <= lo && hi <= static_cast<int64_t>(pairs.size()),
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
            require(first >= 0 && first + chain.n_states < static_cast<int64_t>(x.size()) &&
                        static_cast<int64_t>(out.size()) == chain.n_states,
                    "x must have one entry per column and the end, out one per state");
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
        require(static_cast<int64_t>(v.size()) == chain.n_states + 1 && w.size() == v.size() &&
                    cost.size() + 1 == v.size(),
                "v and w must have one entry per state and the end, cost one per state");
        const nb::gil_scoped_release release;
        const SweepRecord record =
            chain_sweeps(chain, cost.data(), discount, can_end, v.data(), w.data(), target, limit);
        return std::make_tuple(record.sweeps, record.first_span, record.last_span);
    });
    m.def("climb_chain", [](Offsets indptr, Array<const int32_t> indices, Numbers data, Numbers cost, double discount,
                            bool can_end, Array<double> v, double target, int64_t limit, bool by_graph) {
        const Chain chain = chain_of(indptr, indices, data);
        require(static_cast<int64_t>(v.size()) == chain.n_states + 1 && cost.size() + 1 == v.size(),
                "v must have one entry per state and the end, cost one per state");
        const nb::gil_scoped_release release;
        return climb_chain(chain, cost.data(), discount, can_end, v.data(), target, limit, by_graph);
    });
    m.def("gauss_seidel", [](const ModelArrays& model, double discount, bool backwards, Array<double> v) {
        require(static_cast<int64_t>(v.size()) == model.view.n_states + 1,
                "v must have one entry per state and the end");
        const nb::gil_scoped_release release;
        gauss_seidel(model.view, discount, backwards, v.data());
    });
    nb::class_<Ascent>(m, "Ascent")
        .def(nb::init<int64_t, double, bool, double, double, double>(), nb::arg("inner_steps"), nb::arg("step"),
             nb::arg("warm_start"), nb::arg("discount"), nb::arg("lowest_value"), nb::arg("highest_value"));
    m.def("ascend_chi_square", &ascend_pairs<PaperChiSquare>);
    m.def("ascend_kullback_leibler", &ascend_pairs<PaperKullbackLeibler>);
}

}  // namespace robustmdp
