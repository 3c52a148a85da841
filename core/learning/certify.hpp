// What later samples say of frozen tables: sums of a few functions of the outcome, from which bounds are made.
//
// For any eta and any value V, the mean of J(eta; x) is a lower bound of the worst case at V; the value of any
// likelihood ratio t is an upper bound. Both are frozen before the first sample that is counted here.
#pragma once

#include "learner.hpp"
#include "price.hpp"

namespace robustmdp {

// Of deviations from a centre that is fixed in advance.
struct Sums {
    double total, squares;

    void add(double deviation) {
        total += deviation;
        squares += deviation * deviation;
    }
};

// Entries by cell, a pair of one replication, but where said otherwise. Tables of a ball are null for a price. Those
// for lower bounds have one entry per state, at the pair that its policy takes; where a given policy mixes actions, all
// pairs are its own and they have one per cell.
struct Evidence {
    uint32_t* count;
    Sums* dual;     // earned + J less the centre; of a ball, earned less the centre of rewards
    Sums* ratio;    // t - 1
    Sums* cost;     // of a ball: f(t)
    Sums* tilted;   // of a ball: t (x - the centre of outcomes)
    Sums* outcome;  // of a ball: x - the centre of outcomes
    Sums* lower;    // at the policy's pairs: earned + J at `v_lower` less the centre
    // Frozen:
    const float* eta;                        // discounted, in normal form; without a smooth f*, a ceiling of x
    const double* weight;                    // of a ball
    const float* floor;                      // the lowest outcome that has been seen: lower ones are raised to it
    const double* centre;                    // of earned + J
    const double *eta_lower, *weight_lower;  // for `lower`
    const int32_t* policy;                   // of a state, its pair; not read where actions are mixed
    const double *v_lower, *v_upper;         // (replications, n_states + 1), the end last
    double typical_reward;                   // where rewards are not in nature's hands, otherwise 0
};

// Where the policy's own pairs are counted for lower bounds; -1 for other pairs.
inline int64_t lower_entry(const LearnerState& tables, const Evidence& evidence, int64_t replication, int64_t state,
                           int64_t pair) {
    if (tables.mixture) return replication * tables.n_pairs + pair;
    const int64_t column = replication * tables.n_states + state;
    return evidence.policy[column] == pair ? column : -1;
}

inline double weight_of(const LearnerSettings& settings, const Evidence& evidence, int64_t cell, int64_t pair) {
    return settings.constrained ? evidence.weight[cell] : settings.levels[settings.shared_level ? 0 : pair];
}

// The dual function at a frozen eta and weight.
template <class Price> struct FrozenDual {
    Price price;

    // J: x - w (f*(y) - y), y = (eta - x)/w; min(x, eta) for total variation and for a weight of 0.
    double value(double weight, double eta, double x) const {
        if constexpr (Price::SMOOTH)
            if (weight > 0.0) return x - weight * price.at((eta - x) / weight).excess;
        return Price::ROBUST ? smaller(x, eta) : x;
    }

    // dJ/dx: t
    double ratio(double weight, double eta, double x) const {
        if constexpr (Price::SMOOTH)
            if (weight > 0.0) return price.at((eta - x) / weight).slope;
        return Price::ROBUST && x > eta ? 0.0 : 1.0;
    }
};

template <class Price> class Certifier final : public Learner {
public:
    Certifier(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Evidence& evidence)
        : dual_{price}, settings_(settings), tables_(tables), evidence_(evidence) {}

    void absorb(int64_t, const Experience& seen) override {
        const int64_t n = tables_.replications;
        for (int64_t at = 0; at < seen.length * n; ++at)
            count(at % n, {seen.states[at], seen.pairs[at], seen.following[at], seen.rewards[at]});
    }

    // Who follows Q goes on by the learned one, which no longer changes.
    const double* values() const override { return tables_.average ? tables_.average : tables_.q; }
    const LearnerState& tables() const override { return tables_; }

private:
    void count(int64_t replication, const Transition& seen) {
        const int64_t cell = replication * tables_.n_pairs + seen.pair;
        const int64_t own = lower_entry(tables_, evidence_, replication, seen.state, seen.pair);
        const int64_t value = replication * (tables_.n_states + 1) + seen.successor;
        const double paid = settings_.inside ? seen.reward : 0.0, earned = seen.reward - paid;
        count_visit(evidence_.count[cell]);
        count_visit(tables_.visits[cell]);
        const double floor = evidence_.floor[cell];
        const double x = larger(paid + settings_.discount * evidence_.v_upper[value], floor);
        if (settings_.constrained)
            count_ball(cell, evidence_.weight[cell], earned, x);
        else
            count_price(cell, weight_of(settings_, evidence_, cell, seen.pair), earned, x);
        if (own < 0) return;
        const double low = paid + settings_.discount * evidence_.v_lower[value];
        const double j = dual_.value(evidence_.weight_lower[own], evidence_.eta_lower[own], low);
        evidence_.lower[own].add(earned + j - evidence_.centre[cell]);
    }

    void count_price(int64_t cell, double weight, double earned, double x) {
        const double eta = evidence_.eta[cell];
        evidence_.dual[cell].add(earned + dual_.value(weight, eta, x) - evidence_.centre[cell]);
        if constexpr (Price::SMOOTH)
            if (weight > 0.0) evidence_.ratio[cell].add(dual_.price.at((eta - x) / weight).growth);
    }

    void count_ball(int64_t cell, double weight, double earned, double x) {
        const double eta = evidence_.eta[cell], centre = evidence_.centre[cell] - evidence_.typical_reward;
        evidence_.dual[cell].add(earned - evidence_.typical_reward);
        evidence_.outcome[cell].add(x - centre);
        if constexpr (Price::SMOOTH) {
            if (weight > 0.0) {
                const Tilt<double> tilt = dual_.price.at((eta - x) / weight);
                evidence_.ratio[cell].add(tilt.growth);
                evidence_.cost[cell].add(tilt.cost);
                evidence_.tilted[cell].add(tilt.slope * (x - centre));
                return;
            }
        }
        // Mass above the ceiling moves to the lowest outcome that has been seen.
        const bool moves = x > eta;
        evidence_.cost[cell].add(moves ? 1.0 : 0.0);
        evidence_.tilted[cell].add((moves ? static_cast<double>(evidence_.floor[cell]) : x) - centre);
    }

    const FrozenDual<Price> dual_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Evidence evidence_;
};

}  // namespace robustmdp
