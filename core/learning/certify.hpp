// What later samples say of frozen tables: sums of a few functions of the outcome, from which bounds are made.
//
// For any eta and any value V, the mean of J(eta; x) is a lower bound of the worst case at V; the value of any likelihood
// ratio t is an upper bound. Both are frozen before the first sample that is counted here.
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

// Entries by cell, a pair of one replication, but where said otherwise. Tables of a ball are null for a price.
struct Evidence {
    uint32_t* count;
    Sums* dual;     // earned + J less the centre; of a ball, earned less the centre of rewards
    Sums* ratio;    // t - 1
    Sums* cost;     // of a ball: f(t)
    Sums* tilted;   // of a ball: t (x - the centre of outcomes)
    Sums* outcome;  // of a ball: x - the centre of outcomes
    Sums* lower;    // of a state, at the policy's pair: earned + J at `v_lower` less the centre
    // Frozen:
    const double* eta;      // discounted, in normal form; for total variation the ceiling min x + w
    const double* centre;   // of earned + J
    const int32_t* policy;  // of a state, its pair
    const double *v_lower, *v_upper;  // (replications, n_states + 1), the end last
    const double* least;              // of a replication, the least outcome that is possible at v_lower
    double typical_reward;            // where rewards are not in nature's hands, otherwise 0
};

template <class Price> class Certifier final : public Learner {
public:
    Certifier(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Evidence& evidence)
        : price_(price), settings_(settings), tables_(tables), evidence_(evidence) {}

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
        const int64_t column = replication * tables_.n_states + seen.state;
        const int64_t value = replication * (tables_.n_states + 1) + seen.successor;
        const double paid = settings_.inside ? seen.reward : 0.0, earned = seen.reward - paid;
        const double weight =
            settings_.constrained ? tables_.weight[cell] : settings_.levels[settings_.shared_level ? 0 : seen.pair];
        count_visit(evidence_.count[cell]);
        const double x = paid + settings_.discount * evidence_.v_upper[value];
        if (settings_.constrained)
            count_ball(cell, weight, earned, x);
        else
            count_price(cell, weight, earned, x);
        if (evidence_.policy[column] != seen.pair) return;
        const double low = paid + settings_.discount * evidence_.v_lower[value];
        const double ceiling = evidence_.least[replication] + weight;
        evidence_.lower[column].add(earned + dual(weight, evidence_.eta[cell], ceiling, low) - evidence_.centre[cell]);
    }

    // J: x - w (f*(y) - y), y = (eta - x)/w; min(x, ceiling) for total variation and for a weight of 0.
    double dual(double weight, double eta, double ceiling, double x) const {
        if constexpr (Price::SMOOTH)
            if (weight > 0.0) return x - weight * price_.at((eta - x) / weight).excess;
        return Price::ROBUST ? smaller(x, ceiling) : x;
    }

    void count_price(int64_t cell, double weight, double earned, double x) {
        const double eta = evidence_.eta[cell];
        evidence_.dual[cell].add(earned + dual(weight, eta, eta, x) - evidence_.centre[cell]);
        if constexpr (Price::SMOOTH)
            if (weight > 0.0) evidence_.ratio[cell].add(price_.at((eta - x) / weight).growth);
    }

    void count_ball(int64_t cell, double weight, double earned, double x) {
        const double eta = evidence_.eta[cell], centre = evidence_.centre[cell] - evidence_.typical_reward;
        evidence_.dual[cell].add(earned - evidence_.typical_reward);
        evidence_.outcome[cell].add(x - centre);
        if constexpr (Price::SMOOTH) {
            if (weight > 0.0) {
                const Tilt<double> tilt = price_.at((eta - x) / weight);
                evidence_.ratio[cell].add(tilt.growth);
                evidence_.cost[cell].add(tilt.cost);
                evidence_.tilted[cell].add(tilt.slope * (x - centre));
                return;
            }
        }
        // Mass above the ceiling moves to the lowest outcome that has been seen.
        const bool moves = x > eta;
        evidence_.cost[cell].add(moves ? 1.0 : 0.0);
        evidence_.tilted[cell].add((moves ? eta - weight : x) - centre);
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Evidence evidence_;
};

}  // namespace robustmdp
