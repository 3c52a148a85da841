// How far below and above V a certificate starts at rarely visited states, so that few samples there do not widen the
// bounds everywhere. Any margins are valid. Good ones are discounted sums of the deviations to expect along the way,
// c(s) = d(s, a) + discount E t c(s'), which temporal differences learn: at the policy's pair for lower bounds, and for
// upper ones with the largest Q(s, a) - V(s) + c of all actions. Where a given policy mixes actions, both are its mean.
#pragma once

#include "certify.hpp"

namespace robustmdp {

struct Margins {
    double *lower, *upper;  // (replications, n_states + 1), the end last
    Sums* upper_mean;       // of a cell: the mean of d + discount t c for upper bounds; squares of earned + J - centre
    uint32_t* count;        // of a cell
    // Frozen:
    const float *by_spread, *by_reach;  // of a cell: d is the first times the standard deviation, plus the second
    const double* most;                 // of a replication: the largest margin that says anything
};

template <class Price> class MarginLearner final : public Learner {
public:
    MarginLearner(const Price& price, const LearnerSettings& settings, const LearnerState& tables,
                  const Evidence& evidence, const Margins& margins)
        : dual_{price}, settings_(settings), tables_(tables), evidence_(evidence), margins_(margins) {}

    void absorb(int64_t, const Experience& seen) override {
        const int64_t n = tables_.replications;
        for (int64_t at = 0; at < seen.length * n; ++at)
            learn(at % n, {seen.states[at], seen.pairs[at], seen.following[at], seen.rewards[at]});
    }

    const double* values() const override { return tables_.average ? tables_.average : tables_.q; }
    const LearnerState& tables() const override { return tables_; }

private:
    void learn(int64_t replication, const Transition& seen) {
        const int64_t cell = replication * tables_.n_pairs + seen.pair, states = tables_.n_states + 1;
        const int64_t row = replication * states;
        const double paid = settings_.inside ? seen.reward : 0.0, earned = seen.reward - paid;
        const double outcome = paid + settings_.discount * evidence_.v_upper[row + seen.successor];
        const double x = larger(outcome, static_cast<double>(evidence_.floor[cell]));
        const double eta = evidence_.eta[cell], weight = weight_of(settings_, evidence_, cell, seen.pair);
        const double most = margins_.most[replication];
        const double off = earned + dual_.value(weight, eta, x) - evidence_.centre[cell];
        Sums& mean = margins_.upper_mean[cell];
        mean.squares += off * off;
        const uint32_t before = count_visit(margins_.count[cell]);
        count_visit(tables_.visits[cell]);
        const double ahead = settings_.discount * dual_.ratio(weight, eta, x) * margins_.upper[row + seen.successor];
        const double d = margins_.by_spread[cell] * root(mean.squares / (before + 1.0)) + margins_.by_reach[cell];
        move(mean.total, smaller(d + ahead, most), before);
        if (tables_.mixture) {
            const double mean_margin = smaller(mix(replication, seen.state), most);
            margins_.lower[row + seen.state] = margins_.upper[row + seen.state] = mean_margin;
            return;
        }
        margins_.upper[row + seen.state] = smaller(largest_rise(replication, seen.state), most);
        const int64_t own = lower_entry(tables_, evidence_, replication, seen.state, seen.pair);
        if (own < 0) return;
        const double t = dual_.ratio(evidence_.weight_lower[own], evidence_.eta_lower[own], outcome);
        const double fall = d + settings_.discount * t * margins_.lower[row + seen.successor];
        move(margins_.lower[row + seen.state], smaller(fall, most), before);
    }

    // The first visit replaces a placeholder.
    static void move(double& mean, double target, uint32_t before) {
        mean += (target - mean) / root(root(static_cast<double>(before) + 1.0) * (static_cast<double>(before) + 1.0));
    }

    double largest_rise(int64_t replication, int64_t state) const {
        const double* q = evidence_.centre + replication * tables_.n_pairs;
        const Sums* mean = margins_.upper_mean + replication * tables_.n_pairs;
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
            const double most = margins_.most[replication];
            const double unknown = smaller(margins_.by_spread[cell] * 0.5 * most + margins_.by_reach[cell], most);
            total += tables_.mixture[pair] * (margins_.count[cell] ? margins_.upper_mean[cell].total : unknown);
        }
        return total;
    }

    const FrozenDual<Price> dual_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Evidence evidence_;
    const Margins margins_;
};

}  // namespace robustmdp
