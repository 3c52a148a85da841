// How learners appear in Python: a divergence makes them, tables and settings are named.
#pragma once

#include "../learning/certify.hpp"
#include "../learning/learner.hpp"
#include "../learning/margins.hpp"
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
    Optional<double> average, eta, weight, lowest_reward;
    Optional<float> offset, curvature, excess, lowest_offset, rarity;
    Optional<int32_t> lowest;
    LearnerState view{};

    void check_and_view() {
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
        view.average = cells(average);
        view.eta = cells(eta);
        view.weight = cells(weight);
        view.lowest_reward = cells(lowest_reward);
        view.offset = cells(offset);
        view.curvature = cells(curvature);
        view.excess = cells(excess);
        view.lowest_offset = cells(lowest_offset);
        view.rarity = cells(rarity);
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
    require(!view.average || !view.lowest || !is_smooth || (view.offset && view.curvature),
            "there must be tables of the dual variable");
    require(!settings.view.constrained || (view.weight && (!is_smooth || view.excess)),
            "there must be tables of the weight");
}

template <class Price>
std::unique_ptr<Learner> make_follower(const Price& price, const LearnerArrays& tables, const SettingsArrays& settings,
                                       const Steps& q_steps, const Steps& eta_steps) {
    require_settings(tables, settings, Price::SMOOTH);
    require(tables.view.average && (!Price::ROBUST || tables.view.lowest), "the default learner needs its tables");
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

// Sums of a certificate and what is frozen for it, kept alive.
struct EvidenceArrays {
    Array<uint32_t> count;
    Array<double> dual, lower;  // total and squares in turn
    Optional<double> ratio, cost, tilted, outcome;
    Numbers eta, floor, centre, eta_lower, weight_lower;
    std::optional<Numbers> weight;
    Array<const int32_t> policy;
    Numbers v_lower, v_upper;
    double typical_reward;

    Evidence view(const LearnerState& tables) const {
        const auto cells = static_cast<size_t>(tables.replications * tables.n_pairs);
        const auto states = static_cast<size_t>(tables.replications * tables.n_states);
        const auto replications = static_cast<size_t>(tables.replications);
        require(count.size() == cells && eta.size() == cells && floor.size() == cells && centre.size() == cells &&
                    (!weight || weight->size() == cells),
                "count, eta, weight, floor and centre must have one entry per pair and replication");
        require(policy.size() == states && eta_lower.size() == states && weight_lower.size() == states &&
                    v_lower.size() == states + replications && v_upper.size() == v_lower.size(),
                "policy and values must have one entry per state and replication");
        return {
            .count = count.data(),
            .dual = sums(dual, cells),
            .ratio = sums(ratio, cells),
            .cost = sums(cost, cells),
            .tilted = sums(tilted, cells),
            .outcome = sums(outcome, cells),
            .lower = sums(lower, states),
            .eta = eta.data(),
            .weight = weight ? weight->data() : nullptr,
            .floor = floor.data(),
            .centre = centre.data(),
            .eta_lower = eta_lower.data(),
            .weight_lower = weight_lower.data(),
            .policy = policy.data(),
            .v_lower = v_lower.data(),
            .v_upper = v_upper.data(),
            .typical_reward = typical_reward,
        };
    }

private:
    static Sums* sums(const Array<double>& table, size_t size) {
        require(table.size() == 2 * size, "sums must have two entries per cell");
        return reinterpret_cast<Sums*>(table.data());
    }
    static Sums* sums(const Optional<double>& table, size_t size) { return table ? sums(*table, size) : nullptr; }
};

template <class Price>
std::unique_ptr<Learner> make_certifier(const Price& price, const LearnerArrays& tables, const SettingsArrays& settings,
                                        const EvidenceArrays& evidence) {
    require_settings(tables, settings, false);
    const Evidence view = evidence.view(tables.view);
    require(!Price::SMOOTH || view.ratio, "there must be sums of the ratio");
    require(!settings.view.constrained || (view.weight && view.cost && view.tilted && view.outcome),
            "there must be weights and sums of a ball");
    return std::make_unique<Certifier<Price>>(price, settings.view, tables.view, view);
}

struct MarginArrays {
    Array<double> lower, upper;
    Array<const float> by_spread, by_reach;
    Numbers most;

    // Counted in the tables of the evidence, which is empty until margins are known.
    Margins view(const LearnerState& tables, const Evidence& evidence) const {
        const auto cells = static_cast<size_t>(tables.replications * tables.n_pairs);
        const auto states = static_cast<size_t>(tables.replications * (tables.n_states + 1));
        require(lower.size() == states && upper.size() == states,
                "margins must have one entry per state, the end and replication");
        require(by_spread.size() == cells && by_reach.size() == cells,
                "deviations must have one entry per pair and replication");
        require(static_cast<int64_t>(most.size()) == tables.replications, "most must have one entry per replication");
        return {
            .lower = lower.data(),
            .upper = upper.data(),
            .upper_mean = evidence.dual,
            .count = evidence.count,
            .by_spread = by_spread.data(),
            .by_reach = by_reach.data(),
            .most = most.data(),
        };
    }
};

template <class Price>
std::unique_ptr<Learner> make_margin_learner(const Price& price, const LearnerArrays& tables,
                                             const SettingsArrays& settings, const EvidenceArrays& evidence,
                                             const MarginArrays& margins) {
    const Evidence view = evidence.view(tables.view);
    require(!settings.view.constrained || view.weight, "there must be weights of a ball");
    return std::make_unique<MarginLearner<Price>>(price, settings.view, tables.view, view,
                                                  margins.view(tables.view, view));
}

// J, t and f(t) at one outcome per cell.
template <class Price>
void tilt_outcomes(const Price& price, Numbers eta, Numbers weight, Numbers x, Array<double> dual, Array<double> ratio,
                   Array<double> cost) {
    const size_t n = eta.size();
    require(weight.size() == n && x.size() == n && dual.size() == n && ratio.size() == n && cost.size() == n,
            "eta, weight, x and the results must be equally long");
    for (size_t i = 0; i < n; ++i) {
        const Tilt<double> tilt = price.at((eta(i) - x(i)) / weight(i));
        dual(i) = x(i) - weight(i) * tilt.excess;
        ratio(i) = tilt.slope;
        cost(i) = tilt.cost;
    }
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
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>())
        .def(
            "certifier",
            [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                       const EvidenceArrays& evidence) {
                return make_certifier<Price>(price_of(self), tables, settings, evidence);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>())
        .def(
            "margin_learner",
            [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                       const EvidenceArrays& evidence, const MarginArrays& margins) {
                return make_margin_learner<Price>(price_of(self), tables, settings, evidence, margins);
            },
            nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
    if constexpr (Price::SMOOTH) {
        bound.def("tilt", [price_of](const Bound& self, Numbers eta, Numbers weight, Numbers x, Array<double> dual,
                                     Array<double> ratio, Array<double> cost) {
            tilt_outcomes(price_of(self), eta, weight, x, dual, ratio, cost);
        });
        bound.def("slope", [price_of](const Bound& self, Numbers t, Array<double> out) {
            require(t.size() == out.size(), "t and out must be equally long");
            const Price price = price_of(self);
            for (size_t i = 0; i < t.size(); ++i) out(i) = price.slope(t(i));
        });
        bound.def("ascend", [price_of](const Bound& self, StreamAscent& ascent, const Steps& steps, int64_t first,
                                       Numbers outcomes, Array<double> values) {
            require(outcomes.size() == values.size(), "outcomes and values must be equally long");
            ascent.absorb(price_of(self), steps, first, static_cast<int64_t>(outcomes.size()), outcomes.data(),
                          values.data());
        });
    }
}

}  // namespace robustmdp
