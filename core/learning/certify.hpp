// Certificates of frozen tables from later samples: sums of a few functions of the outcome, from which bounds are made.
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
    // Of margins, while they are learned; `dual` then holds the mean of d + discount t c for upper bounds and the sum
    // of squares of earned + J - centre:
    double *margin_lower, *margin_upper;  // (replications, n_states + 1), the end last
    const float *by_spread, *by_reach;    // of a cell: d is the first times the standard deviation, plus the second
    const double* most;                   // of a replication: the largest margin that says anything
};

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

// Counts transitions one by one, at tables that no longer change: who follows Q goes on by the learned one.
template <class Price> class EvidenceLearner : public Learner {
public:
    EvidenceLearner(const Price& price, const LearnerSettings& settings, const LearnerState& tables,
                    const Evidence& evidence)
        : Learner(settings, tables, tables.average ? tables.average : tables.q), dual_{price}, evidence_(evidence) {}

    void absorb(int64_t, const Transitions& seen) override {
        const int64_t n = tables_.replications;
        for (int64_t at = 0; at < seen.length * n; ++at) count(at % n, seen[at]);
    }

protected:
    virtual void count(int64_t replication, const Transition& seen) = 0;

    // Where the policy's own pairs are counted for lower bounds; -1 for other pairs.
    int64_t own_entry(int64_t replication, const Transition& seen) const {
        if (tables_.mixture) return replication * tables_.n_pairs + seen.pair;
        const int64_t column = replication * tables_.n_states + seen.state;
        return evidence_.policy[column] == seen.pair ? column : -1;
    }

    double weight_at(int64_t cell, int64_t pair) const {
        return settings_.constrained ? evidence_.weight[cell] : settings_.levels[settings_.shared_level ? 0 : pair];
    }

    const FrozenDual<Price> dual_;
    const Evidence evidence_;
};

template <class Price> class Certifier final : public EvidenceLearner<Price> {
    using Base = EvidenceLearner<Price>;
    using Base::dual_, Base::evidence_, Base::settings_, Base::tables_;

public:
    using Base::Base;

private:
    void count(int64_t replication, const Transition& seen) override {
        const int64_t cell = replication * tables_.n_pairs + seen.pair;
        const int64_t own = this->own_entry(replication, seen);
        const int64_t value = replication * (tables_.n_states + 1) + seen.successor;
        const double paid = settings_.inside ? seen.reward : 0.0, earned = seen.reward - paid;
        count_visit(evidence_.count[cell]);
        count_visit(tables_.visits[cell]);
        const double floor = evidence_.floor[cell];
        const double x = larger(paid + settings_.discount * evidence_.v_upper[value], floor);
        const double weight = this->weight_at(cell, seen.pair);
        settings_.constrained ? count_ball(cell, weight, earned, x) : count_price(cell, weight, earned, x);
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
};

// How far below and above V a certificate starts at rarely visited states, so that few samples there do not widen the
// bounds everywhere. Any margins are valid. Good ones are discounted sums of the deviations to expect along the way,
// c(s) = d(s, a) + discount E t c(s'), which temporal differences learn: at the policy's pair for lower bounds, and for
// upper ones with the largest Q(s, a) - V(s) + c of all actions. Where a given policy mixes actions, both are its mean.
template <class Price> class MarginLearner final : public EvidenceLearner<Price> {
    using Base = EvidenceLearner<Price>;
    using Base::dual_, Base::evidence_, Base::settings_, Base::tables_;

public:
    using Base::Base;

private:
    void count(int64_t replication, const Transition& seen) override {
        const int64_t cell = replication * tables_.n_pairs + seen.pair, states = tables_.n_states + 1;
        const int64_t row = replication * states;
        const double paid = settings_.inside ? seen.reward : 0.0, earned = seen.reward - paid;
        const double outcome = paid + settings_.discount * evidence_.v_upper[row + seen.successor];
        const double x = larger(outcome, static_cast<double>(evidence_.floor[cell]));
        const double eta = evidence_.eta[cell], weight = this->weight_at(cell, seen.pair);
        const double most = evidence_.most[replication];
        const double off = earned + dual_.value(weight, eta, x) - evidence_.centre[cell];
        Sums& mean = evidence_.dual[cell];
        mean.squares += off * off;
        const uint32_t before = count_visit(evidence_.count[cell]);
        count_visit(tables_.visits[cell]);
        const double ratio = dual_.ratio(weight, eta, x);
        const double ahead = settings_.discount * ratio * evidence_.margin_upper[row + seen.successor];
        const double d = evidence_.by_spread[cell] * root(mean.squares / (before + 1.0)) + evidence_.by_reach[cell];
        move(mean.total, smaller(d + ahead, most), before);
        if (tables_.mixture) {
            const double mean_margin = smaller(mix(replication, seen.state), most);
            evidence_.margin_lower[row + seen.state] = evidence_.margin_upper[row + seen.state] = mean_margin;
            return;
        }
        evidence_.margin_upper[row + seen.state] = smaller(largest_rise(replication, seen.state), most);
        const int64_t own = this->own_entry(replication, seen);
        if (own < 0) return;
        const double t = dual_.ratio(evidence_.weight_lower[own], evidence_.eta_lower[own], outcome);
        const double fall = d + settings_.discount * t * evidence_.margin_lower[row + seen.successor];
        move(evidence_.margin_lower[row + seen.state], smaller(fall, most), before);
    }

    // The first visit replaces a placeholder.
    static void move(double& mean, double target, uint32_t before) {
        mean += (target - mean) / root(root(static_cast<double>(before) + 1.0) * (static_cast<double>(before) + 1.0));
    }

    double largest_rise(int64_t replication, int64_t state) const {
        const double* q = evidence_.centre + replication * tables_.n_pairs;
        const Sums* mean = evidence_.dual + replication * tables_.n_pairs;
        const double v = q[evidence_.policy[replication * tables_.n_states + state]];
        double rise = 0.0;
        for (int64_t pair = tables_.state_ptr[state]; pair < tables_.state_ptr[state + 1]; ++pair)
            rise = larger(rise, q[pair] - v + mean[pair].total);
        return rise;
    }

    // Of a pair that has not come yet, a deviation of half the possible range.
    double mix(int64_t replication, int64_t state) const {
        double total = 0.0;
        for (int64_t pair = tables_.state_ptr[state]; pair < tables_.state_ptr[state + 1]; ++pair) {
            const int64_t cell = replication * tables_.n_pairs + pair;
            const double most = evidence_.most[replication];
            const double unknown = smaller(evidence_.by_spread[cell] * 0.5 * most + evidence_.by_reach[cell], most);
            total += tables_.mixture[pair] * (evidence_.count[cell] ? evidence_.dual[cell].total : unknown);
        }
        return total;
    }
};

}  // namespace robustmdp
