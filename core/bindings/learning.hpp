// How learners appear in Python: a divergence makes them, tables and settings are named.
#pragma once

#include "../learning/certify.hpp"
#include "../learning/follow.hpp"
#include "../learning/printed.hpp"
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

    // A table of records of doubles.
    template <class Record> void take_records(Record*& table, const char* name, int64_t entries) {
        double* numbers = nullptr;
        take(numbers, name, entries * static_cast<int64_t>(sizeof(Record) / sizeof(double)));
        table = reinterpret_cast<Record*>(numbers);
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
        take_records(view.shared_error, "shared_error", view.replications);
        require(view.extent && view.greedy && view.q && view.visits, "extent, greedy, q and visits must be there");
        require(are_all_known(), "every table must be one that learners know");
    }
};

// What a certificate counts and what is frozen for it.
class EvidenceArrays : NamedArrays {
public:
    Evidence view{};

    EvidenceArrays(const LearnerArrays& learner, double typical_reward, const nb::kwargs& arrays)
        : NamedArrays(arrays) {
        const LearnerState& tables = learner.view;
        const int64_t states = tables.replications * tables.n_states, cells = tables.replications * tables.n_pairs;
        const int64_t values = states + tables.replications, own = tables.mixture ? cells : states;
        view.typical_reward = typical_reward;
        take(view.count, "count", cells);
        take_records(view.dual, "dual", cells);
        take_records(view.ratio, "ratio", cells);
        take_records(view.cost, "cost", cells);
        take_records(view.tilted, "tilted", cells);
        take_records(view.outcome, "outcome", cells);
        take_records(view.lower, "lower", own);
        take(view.eta, "eta", cells);
        take(view.weight, "weight", cells);
        take(view.floor, "floor", cells);
        take(view.centre, "centre", cells);
        take(view.eta_lower, "eta_lower", own);
        take(view.weight_lower, "weight_lower", own);
        take(view.policy, "policy", own);
        take(view.v_lower, "v_lower", values);
        take(view.v_upper, "v_upper", values);
        take(view.margin_lower, "margin_lower", values);
        take(view.margin_upper, "margin_upper", values);
        take(view.by_spread, "by_spread", cells);
        take(view.by_reach, "by_reach", cells);
        take(view.most, "most", tables.replications);
        require(view.count && view.dual && view.lower && view.eta && view.floor && view.centre && view.eta_lower &&
                    view.weight_lower && view.policy && view.v_lower && view.v_upper,
                "a certificate needs its tables");
        require(are_all_known(), "every table must be one that certificates know");
    }
};

struct SettingsArrays {
    Numbers levels;
    LearnerSettings view;
};

template <class Price>
void require_tables(const LearnerState& tables, const SettingsArrays& settings, bool is_averaged) {
    require(settings.view.shared_level || static_cast<int64_t>(settings.levels.size()) == tables.n_pairs,
            "levels must be one number or one per pair");
    require(is_averaged ? tables.average && tables.shared_error && (!Price::ROBUST || tables.lowest)
                        : tables.eta != nullptr,
            "the default learner needs average, shared_error and lowest, the printed algorithms eta");
    require(!tables.lowest || !settings.view.inside || tables.lowest_reward || tables.lowest_offset,
            "there must be a table of the lowest rewards");
    require(!is_averaged || !tables.lowest || !Price::SMOOTH ||
                (tables.offset && tables.curvature && tables.lowest_count),
            "there must be tables of the dual variable");
    require(is_averaged || !tables.average == !tables.averaged,
            "there must be a table of how many iterates are averaged");
    require(!settings.view.constrained || (tables.weight && (!Price::SMOOTH || tables.excess)),
            "there must be tables of the weight");
}

template <class Price>
void require_evidence(const Evidence& evidence, const LearnerSettings& settings, bool has_margins) {
    require(!has_margins || (evidence.margin_lower && evidence.margin_upper && evidence.by_spread &&
                             evidence.by_reach && evidence.most),
            "there must be tables of the margins");
    require(!Price::SMOOTH || evidence.ratio, "there must be sums of the ratio");
    require(!settings.constrained || (evidence.weight && evidence.cost && evidence.tilted && evidence.outcome),
            "there must be weights and sums of a ball");
}

// Learners and refiners of one kind; they read tables, settings and schedules that are kept alive.
template <class Base, class Made, bool AVERAGED, class Bound, class PriceOf>
void bind_learner(nb::class_<Bound>& bound, PriceOf price_of, const char* name) {
    bound.def(
        name,
        [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings, const Steps& q_steps,
                   const Steps& eta_steps) -> std::unique_ptr<Base> {
            const auto price = price_of(self);
            require_tables<std::remove_const_t<decltype(price)>>(tables.view, settings, AVERAGED);
            return std::make_unique<Made>(price, settings.view, tables.view, q_steps, eta_steps);
        },
        nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
}

template <class Made, bool HAS_MARGINS, class Bound, class PriceOf>
void bind_evidence_learner(nb::class_<Bound>& bound, PriceOf price_of, const char* name) {
    bound.def(
        name,
        [price_of](const Bound& self, const LearnerArrays& tables, const SettingsArrays& settings,
                   const EvidenceArrays& evidence) -> std::unique_ptr<Learner> {
            const auto price = price_of(self);
            require_evidence<std::remove_const_t<decltype(price)>>(evidence.view, settings.view, HAS_MARGINS);
            return std::make_unique<Made>(price, settings.view, tables.view, evidence.view);
        },
        nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
}

// J, t and f(t) at one outcome per cell, f'(t), and the ascent of one dual variable.
template <class Bound, class PriceOf> void bind_dual(nb::class_<Bound>& bound, PriceOf price_of) {
    const auto tilt = [price_of](const Bound& self, Numbers eta, Numbers weight, Numbers x, Array<double> dual,
                                 Array<double> ratio, Array<double> cost) {
        require_length(static_cast<int64_t>(eta.size()), "eta, weight, x and the results must be equally long", weight,
                       x, dual, ratio, cost);
        const auto price = price_of(self);
        for (size_t i = 0; i < eta.size(); ++i) {
            const Tilt<double> tilt = price.at((eta(i) - x(i)) / weight(i));
            dual(i) = x(i) - weight(i) * tilt.excess;
            ratio(i) = tilt.slope;
            cost(i) = tilt.cost;
        }
    };
    const auto slope = [price_of](const Bound& self, Numbers t, Array<double> out) {
        require(t.size() == out.size(), "t and out must be equally long");
        const auto price = price_of(self);
        for (size_t i = 0; i < t.size(); ++i) out(i) = price.slope(t(i));
    };
    const auto ascent = [price_of](const Bound& self, const Steps& steps, double eta, double low, double high,
                                   double weight, Numbers outcomes, Array<double> values) {
        require(outcomes.size() == values.size(), "outcomes and values must be equally long");
        const int64_t count = static_cast<int64_t>(outcomes.size());
        return ascend(price_of(self), steps, eta, low, high, weight, count, outcomes.data(), values.data());
    };
    bound.def("tilt", tilt).def("slope", slope).def("ascend", ascent);
}

// Learners of a set's price, which `price_of` makes from the bound object.
template <class Bound, class PriceOf> void bind_learners(nb::class_<Bound>& bound, PriceOf price_of) {
    using Price = decltype(price_of(std::declval<const Bound&>()));
    bind_learner<Learner, Follower<Price>, true>(bound, price_of, "follower");
    bind_learner<Learner, PrintedFollower<Price>, false>(bound, price_of, "printed");
    bind_learner<Refiner, RefinerOf<Price>, false>(bound, price_of, "refiner");
    bind_evidence_learner<Certifier<Price>, false>(bound, price_of, "certifier");
    bind_evidence_learner<MarginLearner<Price>, true>(bound, price_of, "margin_learner");
    if constexpr (Price::SMOOTH) bind_dual(bound, price_of);
}

}  // namespace robustmdp
