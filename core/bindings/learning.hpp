// How learners appear in Python: a divergence makes them, tables and settings are named.
#pragma once

#include "../learning/learner.hpp"
#include "../learning/margins.hpp"
#include "../learning/refine.hpp"
#include "arrays.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>

namespace robustmdp {

// Arrays by their names, kept alive; those that are not needed are left out.
class NamedArrays {
public:
    explicit NamedArrays(const nb::kwargs& arrays) : arrays_(arrays) {}

protected:
    template <class T> bool find(const char* name, Array<T>& array) {
        if (!arrays_.contains(name)) return false;
        const bool fits = nb::try_cast(arrays_[name], array, false);
        require(fits, (std::string(name) + " must be a contiguous 1-D array of its type").c_str());
        ++found_;
        return true;
    }

    template <class T> void take(T*& table, const char* name, int64_t entries) {
        Array<T> array;
        if (!find(name, array)) return;
        require(static_cast<int64_t>(array.size()) == entries,
                (std::string(name) + " must have one entry per cell").c_str());
        table = array.data();
    }

    bool are_all_known() const { return found_ == arrays_.size(); }

private:
    nb::kwargs arrays_;
    size_t found_ = 0;
};

class LearnerArrays : NamedArrays {
public:
    LearnerState view{};

    explicit LearnerArrays(const nb::kwargs& arrays) : NamedArrays(arrays) {
        Offsets state_ptr;
        require(find("state_ptr", state_ptr) && state_ptr.size() >= 2, "a world must have at least one state");
        view.state_ptr = state_ptr.data();
        view.n_states = static_cast<int64_t>(state_ptr.size()) - 1;
        view.n_pairs = state_ptr(view.n_states);
        Array<int64_t> diverged;
        require(find("diverged", diverged), "there must be a table named diverged");
        view.diverged = diverged.data();
        view.replications = static_cast<int64_t>(diverged.size());
        const int64_t states = view.replications * view.n_states, cells = view.replications * view.n_pairs;
        take(view.mixture, "mixture", view.n_pairs);
        take(view.extent, "extent", 2 * view.replications);
        take(view.greedy, "greedy", states);
        take(view.q, "q", cells);
        take(view.visits, "visits", cells);
        take(view.average, "average", cells);
        take(view.averaged, "averaged", cells);
        take(view.eta, "eta", cells);
        take(view.weight, "weight", cells);
        take(view.lowest, "lowest", cells);
        take(view.lowest_reward, "lowest_reward", cells);
        take(view.lowest_offset, "lowest_offset", cells);
        take(view.offset, "offset", cells);
        take(view.curvature, "curvature", cells);
        take(view.excess, "excess", cells);
        take(view.lowest_count, "lowest_count", cells);
        double* numbers = nullptr;
        take(numbers, "shared_error", view.replications * static_cast<int64_t>(sizeof(SharedError) / sizeof(double)));
        view.shared_error = reinterpret_cast<SharedError*>(numbers);
        require(view.extent && view.greedy && view.q && view.visits, "extent, greedy, q and visits must be there");
        require(are_all_known(), "every table must be one that learners know");
    }
};

// What a certificate counts and what is frozen for it.
class EvidenceArrays : NamedArrays {
public:
    Evidence view{};
    Margins margins{};

    EvidenceArrays(const LearnerState& tables, double typical_reward, const nb::kwargs& arrays) : NamedArrays(arrays) {
        const int64_t states = tables.replications * tables.n_states, cells = tables.replications * tables.n_pairs;
        const int64_t values = states + tables.replications, own = tables.mixture ? cells : states;
        view.typical_reward = typical_reward;
        take(view.count, "count", cells);
        take_sums(view.dual, "dual", cells);
        take_sums(view.ratio, "ratio", cells);
        take_sums(view.cost, "cost", cells);
        take_sums(view.tilted, "tilted", cells);
        take_sums(view.outcome, "outcome", cells);
        take_sums(view.lower, "lower", own);
        take(view.eta, "eta", cells);
        take(view.weight, "weight", cells);
        take(view.floor, "floor", cells);
        take(view.centre, "centre", cells);
        take(view.eta_lower, "eta_lower", own);
        take(view.weight_lower, "weight_lower", own);
        take(view.policy, "policy", own);
        take(view.v_lower, "v_lower", values);
        take(view.v_upper, "v_upper", values);
        // Margins are counted in the tables of the evidence, which is empty until they are known.
        margins.upper_mean = view.dual;
        margins.count = view.count;
        take(margins.lower, "margin_lower", values);
        take(margins.upper, "margin_upper", values);
        take(margins.by_spread, "by_spread", cells);
        take(margins.by_reach, "by_reach", cells);
        take(margins.most, "most", tables.replications);
        require(view.count && view.dual && view.lower && view.eta && view.floor && view.centre && view.eta_lower &&
                    view.weight_lower && view.policy && view.v_lower && view.v_upper,
                "a certificate needs its tables");
        require(are_all_known(), "every table must be one that certificates know");
    }

private:
    void take_sums(Sums*& sums, const char* name, int64_t entries) {
        double* numbers = nullptr;
        take(numbers, name, 2 * entries);
        sums = reinterpret_cast<Sums*>(numbers);
    }
};

struct SettingsArrays {
    Numbers levels;
    LearnerSettings view;
};

inline void require_tables(const LearnerState& tables, const SettingsArrays& settings, bool is_averaged, bool is_robust,
                           bool is_smooth) {
    require(settings.levels.size() == 1 || static_cast<int64_t>(settings.levels.size()) == tables.n_pairs,
            "levels must be one number or one per pair");
    require(is_averaged ? tables.average && tables.shared_error && (!is_robust || tables.lowest)
                        : tables.eta != nullptr,
            "the default learner needs average, shared_error and lowest, the printed algorithms eta");
    require(!tables.lowest || !settings.view.inside || tables.lowest_reward || tables.lowest_offset,
            "there must be a table of the lowest rewards");
    require(!is_averaged || !tables.lowest || !is_smooth || (tables.offset && tables.curvature && tables.lowest_count),
            "there must be tables of the dual variable");
    require(is_averaged || !tables.average == !tables.averaged,
            "there must be a table of how many iterates are averaged");
    require(!settings.view.constrained || (tables.weight && (!is_smooth || tables.excess)),
            "there must be tables of the weight");
}

inline void require_evidence(const Evidence& evidence, const LearnerSettings& settings, bool is_smooth) {
    require(!is_smooth || evidence.ratio, "there must be sums of the ratio");
    require(!settings.constrained || (evidence.weight && evidence.cost && evidence.tilted && evidence.outcome),
            "there must be weights and sums of a ball");
}

// Learners of a set's price; `price_of` makes it from the bound object.
template <class Bound, class PriceOf> class LearnerBinder {
public:
    using Price = decltype(std::declval<PriceOf>()(std::declval<const Bound&>()));

    LearnerBinder(nb::class_<Bound>& bound, PriceOf price_of) : bound_(bound), price_of_(price_of) {}

    template <class Base, class Made, bool AVERAGED> void bind(const char* name) {
        bound_.def(
            name,
            [price_of = price_of_](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                                   const Steps& q_steps, const Steps& eta_steps) -> std::unique_ptr<Base> {
                require_tables(tables.view, settings, AVERAGED, Price::ROBUST, Price::SMOOTH);
                return std::make_unique<Made>(price_of(self), settings.view, tables.view, q_steps, eta_steps);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
    }

    void bind_certifiers() {
        bound_.def(
            "certifier",
            [price_of = price_of_](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                                   const EvidenceArrays& evidence) -> std::unique_ptr<Learner> {
                require_evidence(evidence.view, settings.view, Price::SMOOTH);
                return std::make_unique<Certifier<Price>>(price_of(self), settings.view, tables.view, evidence.view);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
        bound_.def(
            "margin_learner",
            [price_of = price_of_](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                                   const EvidenceArrays& evidence) -> std::unique_ptr<Learner> {
                require_evidence(evidence.view, settings.view, Price::SMOOTH);
                const Margins& margins = evidence.margins;
                require(margins.lower && margins.upper && margins.by_spread && margins.by_reach && margins.most,
                        "there must be tables of the margins");
                return std::make_unique<MarginLearner<Price>>(price_of(self), settings.view, tables.view, evidence.view,
                                                              margins);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
    }

    // J, t and f(t) at one outcome per cell, and f'(t).
    void bind_tilt() {
        bound_.def("tilt", [price_of = price_of_](const Bound& self, Numbers eta, Numbers weight, Numbers x,
                                                  Array<double> dual, Array<double> ratio, Array<double> cost) {
            const size_t n = eta.size();
            require(weight.size() == n && x.size() == n && dual.size() == n && ratio.size() == n && cost.size() == n,
                    "eta, weight, x and the results must be equally long");
            const Price price = price_of(self);
            for (size_t i = 0; i < n; ++i) {
                const Tilt<double> tilt = price.at((eta(i) - x(i)) / weight(i));
                dual(i) = x(i) - weight(i) * tilt.excess;
                ratio(i) = tilt.slope;
                cost(i) = tilt.cost;
            }
        });
        bound_.def("slope", [price_of = price_of_](const Bound& self, Numbers t, Array<double> out) {
            require(t.size() == out.size(), "t and out must be equally long");
            const Price price = price_of(self);
            for (size_t i = 0; i < t.size(); ++i) out(i) = price.slope(t(i));
        });
    }

    void bind_ascent() {
        bound_.def("ascend", [price_of = price_of_](const Bound& self, const Steps& steps, double eta, double low,
                                                    double high, double weight, Numbers outcomes,
                                                    Array<double> values) {
            require(outcomes.size() == values.size(), "outcomes and values must be equally long");
            const int64_t count = static_cast<int64_t>(outcomes.size());
            return ascend(price_of(self), steps, eta, low, high, weight, count, outcomes.data(), values.data());
        });
    }

private:
    nb::class_<Bound>& bound_;
    PriceOf price_of_;
};

template <class Bound, class PriceOf> void bind_learners(nb::class_<Bound>& bound, PriceOf price_of) {
    LearnerBinder<Bound, PriceOf> binder(bound, price_of);
    using Price = typename LearnerBinder<Bound, PriceOf>::Price;
    binder.template bind<Learner, LearnerOf<Follower<Price>, true>, true>("follower");
    binder.template bind<Learner, LearnerOf<PrintedFollower<Price>, false>, false>("printed");
    binder.template bind<Refiner, RefinerOf<Price>, false>("refiner");
    binder.bind_certifiers();
    if constexpr (Price::SMOOTH) {
        binder.bind_tilt();
        binder.bind_ascent();
    }
}

}  // namespace robustmdp
