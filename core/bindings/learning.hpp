// How learners appear in Python: a divergence makes them, tables and settings are named.
#pragma once

#include "../learning/learner.hpp"
#include "../learning/refine.hpp"
#include "arrays.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>

namespace robustmdp {

// Tables of a learner by their names, kept alive; those it has no use for are left out.
class LearnerArrays {
public:
    LearnerState view{};

    explicit LearnerArrays(const nb::kwargs& arrays) : arrays_(arrays) {
        Offsets state_ptr;
        require(find("state_ptr", state_ptr) && state_ptr.size() >= 2, "a world must have at least one state");
        view.state_ptr = state_ptr.data();
        view.n_states = static_cast<int64_t>(state_ptr.size()) - 1;
        view.n_pairs = state_ptr(view.n_states);
        Array<int64_t> diverged;
        require(find("diverged", diverged), "there must be a table named diverged");
        view.diverged = diverged.data();
        view.replications = static_cast<int64_t>(diverged.size());
        take(view.extent, "extent", 2);
        take(view.greedy, "greedy", view.n_states);
        take(view.q, "q", view.n_pairs);
        take(view.visits, "visits", view.n_pairs);
        take(view.average, "average", view.n_pairs);
        take(view.averaged, "averaged", view.n_pairs);
        take(view.eta, "eta", view.n_pairs);
        take(view.weight, "weight", view.n_pairs);
        take(view.lowest, "lowest", view.n_pairs);
        take(view.lowest_reward, "lowest_reward", view.n_pairs);
        take(view.lowest_offset, "lowest_offset", view.n_pairs);
        take(view.offset, "offset", view.n_pairs);
        take(view.curvature, "curvature", view.n_pairs);
        take(view.excess, "excess", view.n_pairs);
        take(view.rarity, "rarity", view.n_pairs);
        require(view.extent && view.greedy && view.q && view.visits, "extent, greedy, q and visits must be there");
        require(found_ == arrays_.size(), "every table must be one that learners know");
    }

private:
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
        require(static_cast<int64_t>(array.size()) == view.replications * entries,
                (std::string(name) + " must have one entry per cell").c_str());
        table = array.data();
    }

    nb::kwargs arrays_;
    size_t found_ = 0;
};

struct SettingsArrays {
    Numbers levels;
    LearnerSettings view;
};

inline void require_tables(const LearnerState& tables, const SettingsArrays& settings, bool is_averaged,
                           bool is_robust, bool is_smooth) {
    require(settings.levels.size() == 1 || static_cast<int64_t>(settings.levels.size()) == tables.n_pairs,
            "levels must be one number or one per pair");
    require(is_averaged ? tables.average && (!is_robust || tables.lowest) : tables.eta != nullptr,
            "the default learner needs average and lowest, the printed algorithms eta");
    require(!tables.lowest || !settings.view.inside || tables.lowest_reward || tables.lowest_offset,
            "there must be a table of the lowest rewards");
    require(!is_averaged || !tables.lowest || !is_smooth || (tables.offset && tables.curvature),
            "there must be tables of the dual variable");
    require(is_averaged || !tables.average == !tables.averaged, "there must be a table of how many iterates are averaged");
    require(!settings.view.constrained || (tables.weight && (!is_smooth || tables.excess)),
            "there must be tables of the weight");
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
    if constexpr (Price::SMOOTH) binder.bind_ascent();
}

}  // namespace robustmdp
