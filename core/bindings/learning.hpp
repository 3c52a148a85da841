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

template <class T> using Optional = std::optional<Array<T>>;

// Tables of a learner, kept alive.
struct LearnerArrays {
    Offsets state_ptr;
    Array<double> q;
    Array<uint32_t> visits;
    Array<int32_t> greedy;
    Array<double> extent;
    Array<int64_t> diverged;
    Optional<double> average, eta, weight, lowest_reward, level;
    Optional<float> offset, curvature, excess, lowest_offset;
    Optional<uint32_t> lowest_count;
    Optional<int32_t> lowest;
    LearnerState view{};

    void look() {
        view.state_ptr = state_ptr.data();
        view.n_states = static_cast<int64_t>(state_ptr.size()) - 1;
        require(view.n_states >= 1, "a world must have at least one state");
        view.n_pairs = state_ptr(view.n_states);
        view.replications = static_cast<int64_t>(diverged.size());
        require(static_cast<int64_t>(greedy.size()) == view.replications * view.n_states,
                "greedy must have one entry per state and replication");
        require(extent.size() == 2 * diverged.size(), "extent must have two entries per replication");
        view.q = cells(q);
        view.visits = cells(visits);
        view.greedy = greedy.data();
        view.extent = extent.data();
        view.diverged = diverged.data();
        static_assert(sizeof(Level) % sizeof(double) == 0);
        require(!level || level->size() * sizeof(double) == diverged.size() * sizeof(Level),
                "level must have one record per replication");
        view.level = level ? reinterpret_cast<Level*>(level->data()) : nullptr;
        view.average = cells(average);
        view.eta = cells(eta);
        view.weight = cells(weight);
        view.lowest_reward = cells(lowest_reward);
        view.offset = cells(offset);
        view.curvature = cells(curvature);
        view.excess = cells(excess);
        view.lowest_offset = cells(lowest_offset);
        view.lowest_count = cells(lowest_count);
        view.lowest = cells(lowest);
    }

private:
    template <class T> T* cells(const Array<T>& table) const {
        require(static_cast<int64_t>(table.size()) == view.replications * view.n_pairs,
                "a table must have one entry per pair and replication");
        return table.data();
    }
    template <class T> T* cells(const Optional<T>& table) const { return table ? cells(*table) : nullptr; }
};

struct SettingsArrays {
    Numbers levels;
    LearnerSettings view;
};

inline void require_settings(const LearnerArrays& tables, const SettingsArrays& settings, bool is_smooth) {
    require(settings.levels.size() == 1 || static_cast<int64_t>(settings.levels.size()) == tables.view.n_pairs,
            "levels must be one number or one per pair");
    const LearnerState& view = tables.view;
    require(!view.lowest || !settings.view.inside || view.lowest_reward || view.lowest_offset,
            "there must be a table of the lowest rewards");
    require(!view.average || !view.lowest || !is_smooth || (view.offset && view.curvature && view.lowest_count),
            "there must be tables of the dual variable");
    require(!settings.view.constrained || (view.weight && (!is_smooth || view.excess)),
            "there must be tables of the weight");
}

template <class Price>
std::unique_ptr<Learner> make_follower(const Price& price, const LearnerArrays& tables, const SettingsArrays& settings,
                                       const Steps& q_steps, const Steps& eta_steps) {
    require_settings(tables, settings, Price::SMOOTH);
    require(tables.view.average && tables.view.level && (!Price::ROBUST || tables.view.lowest),
            "the default learner needs its tables");
    return std::make_unique<LearnerOf<Follower<Price>, true>>(price, settings.view, tables.view, q_steps, eta_steps);
}

template <class Price>
std::unique_ptr<Learner> make_printed(const Price& price, const LearnerArrays& tables, const SettingsArrays& settings,
                                      const Steps& q_steps, const Steps& eta_steps) {
    require_settings(tables, settings, Price::SMOOTH);
    require(tables.view.eta, "the printed algorithms need a table of eta");
    return std::make_unique<LearnerOf<PrintedFollower<Price>, false>>(price, settings.view, tables.view, q_steps,
                                                                      eta_steps);
}

template <class Price>
std::unique_ptr<Refiner> make_refiner(const Price& price, const LearnerArrays& tables, const SettingsArrays& settings,
                                      const Steps& eta_steps) {
    require_settings(tables, settings, Price::SMOOTH);
    require(tables.view.eta, "the printed algorithms need a table of eta");
    return std::make_unique<RefinerOf<Price>>(price, settings.view, tables.view, eta_steps);
}

// Learners of a set's price; `price_of` makes it from the bound object.
template <class Bound, class PriceOf> void bind_learners(nb::class_<Bound>& bound, PriceOf price_of) {
    using Price = decltype(price_of(std::declval<const Bound&>()));
    bound
        .def(
            "follower",
            [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                       const Steps& q_steps, const Steps& eta_steps) {
                return make_follower<Price>(price_of(self), tables, settings, q_steps, eta_steps);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>())
        .def(
            "printed",
            [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                       const Steps& q_steps, const Steps& eta_steps) {
                return make_printed<Price>(price_of(self), tables, settings, q_steps, eta_steps);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>())
        .def(
            "refiner",
            [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                       const Steps& eta_steps) {
                return make_refiner<Price>(price_of(self), tables, settings, eta_steps);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
    if constexpr (Price::SMOOTH)
        bound.def("ascend", [price_of](const Bound& self, StreamAscent& ascent, const Steps& steps, int64_t first,
                                       Numbers outcomes, Array<double> values) {
            require(outcomes.size() == values.size(), "outcomes and values must be equally long");
            ascent.absorb(price_of(self), steps, first, static_cast<int64_t>(outcomes.size()), outcomes.data(),
                          values.data());
        });
}

}  // namespace robustmdp
