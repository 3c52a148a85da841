// What a learner keeps, O(|S||A|), and the steps that all learners share.
//
// Everything is discounted: outcomes are x = discount V(s') (plus r where the reward belongs to the outcome), the dual
// variable is discount * eta, the weight discount * weight, and f is in normal form.
#pragma once

#include "../rows.hpp"
#include "cells.hpp"

namespace robustmdp {

// The error that all values share, which learning by steps mends last: scalar extrapolation (Porteus 1971).
//
// Where Q = Q* - b, the same b at all pairs, targets lie (1 - discount) b above Q on average. Residuals r = target - Q
// therefore estimate b, each pair with the same weight (1/visits), less what steps have moved since. Endings fix
// values by themselves, and those that decay on the way to them share no error: then nothing is extrapolated.
struct SharedError {
    double residual, squares, cross, weights;  // sums of w r, (w r)^2, w^2 r and w^2, where w = 1/visits
    double weight;                             // sum of w
    double moved, ahead;                       // mean of Q's steps over all pairs, and sum of w times it until then
    double endings;                            // that were seen, ever

    void add(double r, double w, double step) {
        residual += w * r;
        squares += w * w * r * r;
        cross += w * w * r;
        weights += w * w;
        weight += w;
        ahead += w * moved;
        moved += step;
    }

    // b, shrunk by its variance (James and Stein's positive part), so that noise alone moves little.
    double estimate(double horizon) const {
        if (weight == 0.0 || endings > 0.0) return 0.0;
        const double mean = residual / weight, b = horizon * mean - (moved - ahead / weight), unit = horizon / weight;
        const double variance = larger(squares - mean * (2.0 * cross - mean * weights), 0.0) * unit * unit;
        return b * b > variance ? b - variance / b : 0.0;
    }

    void restart() { *this = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, endings}; }
};

// Tables of several replications, one after the other, so that their updates, which do not wait for each other,
// overlap. A cell is a pair of one replication. Tables that a learner has no use for are null.
struct LearnerState {
    double* q;         // the current iterate
    double* average;   // of the iterates
    double* eta;       // the dual variable, of the printed algorithms
    float* offset;     // the dual variable less the average
    float* curvature;  // running mean of f*''
    double* weight;    // of a ball
    float* excess;     // running mean of |f(t) - radius|
    uint32_t* visits;
    uint32_t* averaged;         // iterates in the average, of the printed algorithms
    int32_t* lowest;            // the successor with the lowest outcome so far, -1 for none
    double* lowest_reward;      // and what it paid, where that belongs to the outcome
    float* lowest_offset;       // the same less the anchor, where it is a bound only
    uint32_t* lowest_count;     // visits that led to the lowest successor
    int32_t* greedy;            // of each state, the pair with the largest Q
    SharedError* shared_error;  // of each replication, its estimate
    double* extent;             // of each replication, the least and the largest reward
    int64_t* diverged;          // of each replication, the step at which Q was no longer finite, or -1
    const double* mixture;      // of each pair, its share in the policy whose value is learned; null: greedy actions
    const int64_t* state_ptr;
    int64_t n_states, n_pairs, replications;
};

struct LearnerSettings {
    double discount;
    bool inside;  // does the reward belong to the outcome, and so to nature's choice?
    bool can_end;
    bool growing;      // is the range of rewards learned as well?
    bool by_visits;    // do schedules count visits of the pair, or steps?
    bool constrained;  // is the level a radius, or a weight?
    bool literal;      // Algorithm 2 to the letter: V is not projected
    double anchor;     // a typical reward
    double burn_in;    // steps that are left out of the average
    double low, high;  // of the dual variable, in the printed algorithms
    const double* levels;
    bool shared_level;
};

struct Transition {
    int64_t state, pair, successor;
    double reward;
};

// What replications side by side see in one step.
template <class T> struct Sample {
    Places<T> state, pair, successor;
    T reward;
};

// Transitions of all replications, entry [step * replications + r]; the successor n_states is the end.
struct Transitions {
    int32_t* states;
    int32_t* pairs;
    double* rewards;
    int32_t* following;
    int64_t length;

    Transition operator[](int64_t at) const { return {states[at], pairs[at], following[at], rewards[at]}; }

    void put(int64_t at, const Transition& seen) const {
        states[at] = static_cast<int32_t>(seen.state);
        pairs[at] = static_cast<int32_t>(seen.pair);
        rewards[at] = seen.reward;
        following[at] = static_cast<int32_t>(seen.successor);
    }

    // Of the replications from entry `first` on.
    template <class T> [[gnu::always_inline]] Sample<T> sample(int64_t first) const {
        const auto read = [first](const int32_t* column) {
            return places<T>([=](int l) { return column[first + l]; });
        };
        return {read(states), read(pairs), read(following), load<T>(rewards + first)};
    }
};

// The values that are possible, and the rewards that have come.
template <class T> struct Range {
    T low, high, least_reward, most_reward;
};

template <class T> inline Range<T> make_range(const LearnerSettings& settings, T least_reward, T most_reward) {
    T low = least_reward / (1.0 - settings.discount), high = most_reward / (1.0 - settings.discount);
    if (settings.can_end) {
        low = smaller(low, broadcast<T>(0.0));
        high = larger(high, broadcast<T>(0.0));
    }
    return {low, high, least_reward, most_reward};
}

template <class T> inline Range<T> broadcast(const Range<double>& range) {
    return {broadcast<T>(range.low), broadcast<T>(range.high), broadcast<T>(range.least_reward),
            broadcast<T>(range.most_reward)};
}

// Four replications at a time where the processor has registers for them, the others one by one: `step(r, T())` does
// those from r on.
template <bool WIDE, class Step> [[gnu::always_inline]] inline void side_by_side(int64_t replications, Step step) {
    int64_t r = 0;
    if constexpr (WIDE && HAS_WIDE_REGISTERS)
        for (; r + WIDTH <= replications; r += WIDTH) step(r, Lanes());
    for (; r < replications; ++r) step(r, double());
}

// The same for those that have not diverged.
template <bool WIDE, class Learn>
[[gnu::always_inline]] inline void teach_replications(const LearnerState& tables, Learn learn) {
    const int64_t* diverged = tables.diverged;
    side_by_side<WIDE>(tables.replications, [&](int64_t r, auto kind) {
        if constexpr (lane_count<decltype(kind)> > 1) {
            if ((diverged[r] & diverged[r + 1] & diverged[r + 2] & diverged[r + 3]) < 0) return learn(r, kind);
            for (int l = 0; l < WIDTH; ++l)
                if (diverged[r + l] < 0) learn(r + l, double());
        } else if (diverged[r] < 0) {
            learn(r, kind);
        }
    });
}

// A step's counters.
inline uint32_t count_visit(uint32_t& visits) {
    const uint32_t before = visits;
    visits += before < UINT32_MAX;
    return before;
}

// The mean of the iterates after the burn-in (Polyak and Ruppert); before, the iterate itself.
inline void average_iterate(const LearnerState& tables, int64_t cell, bool is_burnt_in) {
    double& average = tables.average[cell];
    const double q = tables.q[cell];
    const double before = is_burnt_in ? count_visit(tables.averaged[cell]) : 0.0;
    average = before > 0.0 ? average + (q - average) / (before + 1.0) : q;
}

// Keep greedy[state] at the pair of the largest value after that of `pair` changed; ties go to the first pair.
inline void renew_greedy(const LearnerState& tables, const double* values, int64_t replication, int64_t state,
                         int64_t pair) {
    constexpr int64_t FEW = 4;
    int32_t& greedy = tables.greedy[replication * tables.n_states + state];
    const double* row = values + replication * tables.n_pairs;
    const int64_t first = tables.state_ptr[state], last = tables.state_ptr[state + 1];
    int64_t best = greedy;
    if (last - first > FEW && best != pair) {
        if (row[pair] > row[best] || (row[pair] == row[best] && pair < best)) greedy = static_cast<int32_t>(pair);
        return;
    }
    // Few actions are compared one by one, without a branch that depends on chance.
    best = first;
    double top = row[first];
    for (int64_t candidate = first + 1; candidate < last; ++candidate) {
        const bool is_larger = row[candidate] > top;
        best = is_larger ? candidate : best;
        top = is_larger ? row[candidate] : top;
    }
    greedy = static_cast<int32_t>(best);
}

}  // namespace robustmdp
