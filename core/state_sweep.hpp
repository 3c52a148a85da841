// Bellman loops over states whose actions nature answers together; templates over the set of a state. A call owns the
// states lo..hi of its outputs, so that any split over threads gives equal bits.
#pragma once

#include "ambiguity/shared_budget.hpp"

namespace robustmdp {

// Visit the states lo..hi: use(state, rows, level, work).
template <class Set, class Use>
inline void visit_states(const Set& set, const Model& model, Levels levels, const double* outcome, int64_t lo,
                         int64_t hi, const double* memory, Use use) {
    StateRows rows(model, Set::RowSet::COLUMNS);
    typename Set::Work work(model);
    for (int64_t s = lo; s < hi; ++s) {
        rows.fill(set.rows(), model, outcome, s);
        set.recall(rows, model, memory, work);
        use(s, rows, levels[s], work);
    }
}

template <class Work> inline void recall_policy(const StateRows& rows, const double* policy, Work& work) {
    for (int a = 0; a < rows.count; ++a) work.share[a] = policy[rows.first_pair + a];
}

// The best policy where nature helps: it spends all on the one action that gains most. Values are those of -z, from the floor.
template <class Set>
inline double solve_with_help(const Set& set, const StateRows& rows, double level, Accuracy accuracy,
                              typename Set::Work& work) {
    double least = INFINITE;
    int best = 0;
    for (int a = 0; a < rows.count; ++a) {
        choose_action(rows, a, work);
        const double value = set.solve_given(rows, level, accuracy, work);
        if (value < least) least = value, best = a;
    }
    choose_action(rows, best, work);
    return least;
}

// value = max over policies of the worst case, policy (n_pairs,) = the one that attains it.
template <class Set>
void sweep_states(const Set& set, const Model& model, Levels levels, const double* outcome, int64_t lo, int64_t hi,
                  double* memory, double* value, double* policy) {
    const auto use = [&](int64_t s, const StateRows& rows, double level, auto& work) {
        const double found = model.sign > 0.0 ? set.solve(rows, level, Accuracy::FAST, work).value
                                              : solve_with_help(set, rows, level, Accuracy::FAST, work);
        value[s] = model.sign * (rows.floor + found);
        for (int a = 0; a < rows.count; ++a) policy[rows.first_pair + a] = work.share[a];
        set.remember(rows, model, work, memory);
    };
    visit_states(set, model, levels, outcome, lo, hi, memory, use);
}

// value = the worst case of a policy, (n_pairs,) probabilities.
template <class Set>
void evaluate_states(const Set& set, const Model& model, Levels levels, const double* outcome, const double* policy,
                     int64_t lo, int64_t hi, const double* memory, double* value) {
    const auto use = [&](int64_t s, const StateRows& rows, double level, auto& work) {
        recall_policy(rows, policy, work);
        value[s] = model.sign * (rows.floor + set.solve_given(rows, level, Accuracy::FAST, work));
    };
    visit_states(set, model, levels, outcome, lo, hi, memory, use);
}

// Certified lower <= value <= upper of each state: of the policy if it is `given`, else of the best one, which is then
// written. q = r + E outcome under nature's answer, (n_pairs,). `scale` bounds |r| and |discount v|.
template <class Set>
void bracket_states(const Set& set, const Model& model, Levels levels, const double* outcome, double scale, bool given,
                    int64_t lo, int64_t hi, const double* memory, double* policy, double* lower, double* upper,
                    double* q) {
    const double rounding = 8.0 * EPS * scale;
    const auto use = [&](int64_t s, const StateRows& rows, double level, auto& work) {
        Bounds<double> bounds{};
        if (given) {
            recall_policy(rows, policy, work);
            bounds = set.bound_given(rows, level, work);
        } else if (model.sign > 0.0) {
            bounds = set.bound(rows, level, set.solve(rows, level, Accuracy::EXACT, work), work);
        } else {
            double least = INFINITE;
            for (int a = 0; a < rows.count; ++a) {
                choose_action(rows, a, work);
                least = smaller(set.bound_given(rows, level, work).lower, least);
            }
            solve_with_help(set, rows, level, Accuracy::EXACT, work);
            bounds = {least, set.bound_given(rows, level, work).upper};
        }
        const bool helps = model.sign < 0.0;
        lower[s] = model.sign * (rows.floor + (helps ? bounds.upper : bounds.lower)) - rounding;
        upper[s] = model.sign * (rows.floor + (helps ? bounds.lower : bounds.upper)) + rounding;
        for (int a = 0; a < rows.count; ++a) {
            policy[rows.first_pair + a] = work.share[a];
            q[rows.first_pair + a] = model.sign * (rows.floor + (rows.base(a) + work.mean[a]));
        }
    };
    visit_states(set, model, levels, outcome, lo, hi, memory, use);
}

// data[starts[pair]:starts[pair+1]] = nature's row, where there is room for it; penalty[pair] = what nature pays in the
// whole state. The answer is to the policy if it is `given`, else to the best one.
template <class Set>
void respond_states(const Set& set, const Model& model, Levels levels, const double* outcome, bool given,
                    const double* policy, const int64_t* starts, int64_t lo, int64_t hi, const double* memory,
                    double* data, double* penalty) {
    const auto use = [&](int64_t, const StateRows& rows, double level, auto& work) {
        if (given) {
            recall_policy(rows, policy, work);
            set.answer_given(rows, level, work);
        } else if (model.sign > 0.0) {
            set.answer(rows, level, set.solve(rows, level, Accuracy::EXACT, work), work);
        } else {
            solve_with_help(set, rows, level, Accuracy::EXACT, work);
            set.answer_given(rows, level, work);
        }
        const bool pays = Set::IS_PRICED && LEAST_WEIGHT <= level && level < INFINITE;
        const double paid = pays ? model.sign * level * set.paid(rows, work) : 0.0;
        for (int a = 0; a < rows.count; ++a) {
            const int64_t pair = rows.first_pair + a;
            if (starts[pair + 1] > starts[pair])
                std::copy_n(work.answers.data() + rows.offset(a), rows.length(a), data + starts[pair]);
            penalty[pair] = paid;
        }
    };
    visit_states(set, model, levels, outcome, lo, hi, memory, use);
}

}  // namespace robustmdp
