// Bellman loops over many pairs, templates over the set. A call owns the rows lo..hi of its outputs, so that any split
// over threads gives equal bits.
#pragma once

#include "ambiguity/nominal.hpp"

#include <type_traits>

namespace robustmdp {

// One level for all pairs, or one per pair.
struct Levels {
    const double* values;
    bool shared;

    double operator[](int64_t pair) const { return values[shared ? 0 : pair]; }
};

// The pairs to visit: a list, or all of them in order.
struct PairList {
    const int64_t* listed;

    int64_t operator[](int64_t i) const { return listed ? listed[i] : i; }
};

constexpr int WARM_PASSES = 6, COLD_PASSES = 10;  // a row that needs more is solved by itself

inline Solved<double> trivial(const Rows<double>& row, Room room) {
    return room == Room::NONE ? without_room(row) : with_all_room();
}

// Rows from where the last solve ended, then from scratch.
template <class Set, class T>
inline Solved<T> solve_rows(const Set& set, const Rows<T>& rows, T level, const T* start, Accuracy accuracy) {
    Solved<T> solved = set.solve(rows, level, start, accuracy, WARM_PASSES);
    if (all(solved.converged) || Set::MEMORY == 0) return solved;
    T unknown[Set::MEMORY + 1];
    for (T& number : unknown) number = broadcast<T>(NOT_A_NUMBER);
    const Solved<T> again = set.solve(rows, level, unknown, accuracy, COLD_PASSES);
    const Mask<T> first = solved.converged;
    return {select(first, solved.value, again.value),
            select(first, solved.distance, again.distance),
            select(first, solved.weight, again.weight),
            select(first, solved.base, again.base),
            first | again.converged,
            solved.room};
}

template <class Set>
inline Solved<double> solve_row(const Set& set, const Rows<double>& row, double level, const double* start,
                                Accuracy accuracy) {
    const Room room = Set::room(level);
    if (room != Room::SOME) return trivial(row, room);
    const Solved<double> solved = solve_rows(set, row, level, start, accuracy);
    return solved.converged ? solved : set.solve_alone(row, level, accuracy);
}

// Solve up to WIDTH rows and call use(rows, level, solved, lane): once for all lanes, or for each lane by itself where
// one of them needs more work. `memory` holds Set::MEMORY numbers per pair.
template <class Set, class Use>
inline void solve_block(const Set& set, const Block& block, const int64_t* pairs, int count, Levels levels,
                        const double* memory, Accuracy accuracy, Use use) {
    constexpr int M = Set::MEMORY;
    double level[WIDTH], start[WIDTH][M + 1];
    bool ordinary = true;
    for (int l = 0; l < WIDTH; ++l) {
        const int64_t pair = pairs[l < count ? l : count - 1];
        level[l] = levels[pair];
        ordinary &= Set::room(level[l]) == Room::SOME;
        for (int m = 0; m < M; ++m) start[l][m] = memory[pair * M + m];
    }
    if (ordinary) {
        const Rows<Lanes> rows = block.side_by_side();
        const Lanes weight{level[0], level[1], level[2], level[3]};
        if (set.runs_side_by_side(rows, weight)) {
            Lanes from[M + 1];
            for (int m = 0; m < M; ++m) from[m] = Lanes{start[0][m], start[1][m], start[2][m], start[3][m]};
            const Solved<Lanes> solved = solve_rows(set, rows, weight, from, accuracy);
            if (all(solved.converged) && set.answers_side_by_side(rows, solved)) return use(rows, weight, solved, 0);
            for (int l = 0; l < count; ++l) {
                const Rows<double> row = block.row(l);
                // From the start again, so that a row does not depend on its neighbours.
                use(row, level[l],
                    solved.converged[l] ? pick_lane(solved, l) : solve_row(set, row, level[l], start[l], accuracy), l);
            }
            return;
        }
    }
    for (int l = 0; l < count; ++l) {
        const Rows<double> row = block.row(l);
        use(row, level[l], solve_row(set, row, level[l], start[l], accuracy), l);
    }
}

constexpr int64_t AHEAD = 2 * WIDTH;  // rows between prefetching and use

// Visit pairs lo..hi in blocks of WIDTH.
template <class Set, class Use>
inline void solve_pairs(const Set& set, const Model& model, Levels levels, const double* outcome, PairList list,
                        int64_t lo, int64_t hi, const double* memory, Accuracy accuracy, Use use) {
    Block block(model.longest_row);
    for (int64_t first = lo; first < hi; first += WIDTH) {
        const int count = hi - first < WIDTH ? static_cast<int>(hi - first) : WIDTH;
        int64_t pairs[WIDTH];
        for (int l = 0; l < count; ++l) pairs[l] = list[first + l];
        for (int64_t i = first + AHEAD; i < hi && i < first + AHEAD + WIDTH; ++i)
            Block::prefetch(model, outcome, list[i]);
        block.fill(model, outcome, pairs, count);
        solve_block(set, block, pairs, count, levels, memory, accuracy,
                    [&](const auto& rows, const auto& level, const auto& solved, int l) {
                        use(first + l, pairs + l, sizeof(level) == sizeof(double) ? 1 : count, rows, level, solved);
                    });
    }
}

// q = r + worst case; each pair's memory is renewed.
template <class Set>
void worst_values(const Set& set, const Model& model, Levels levels, const double* outcome, PairList list, int64_t lo,
                  int64_t hi, double* memory, double* q) {
    const auto write = [&](int64_t first, const int64_t* pairs, int count, const auto& rows, const auto&,
                           const auto& solved) {
        using T = std::remove_cvref_t<decltype(rows.lowest)>;
        const T value = rows.lowest + solved.value;
        T renewed[Set::MEMORY + 1];
        set.remember(rows, solved, renewed);
        for (int l = 0; l < count; ++l) {
            q[first + l] = model.fixed_reward(pairs[l]) + lane(value, l);
            for (int m = 0; m < Set::MEMORY; ++m) memory[pairs[l] * Set::MEMORY + m] = lane(renewed[m], l);
        }
    };
    solve_pairs(set, model, levels, outcome, list, lo, hi, memory, Accuracy::FAST, write);
}

// q = r + E outcome, four rows at a time without a detour through a block.
template <>
inline void worst_values(const Nominal&, const Model& model, Levels, const double* outcome, PairList list, int64_t lo,
                         int64_t hi, double*, double* q) {
    for (int64_t i = lo; i < hi; ++i) {
        const int64_t pair = list[i];
        const int64_t first = model.indptr[pair], last = model.indptr[pair + 1];
        double even = 0.0, odd = 0.0;
        int64_t j = first;
        if (model.rewards_on_successors) {
            for (; j < last; ++j) even += model.probabilities[j] * (model.rewards[j] + outcome[model.indices[j]]);
            q[i] = even;
            continue;
        }
        for (; j + 1 < last; j += 2) {
            even += model.probabilities[j] * outcome[model.indices[j]];
            odd += model.probabilities[j + 1] * outcome[model.indices[j + 1]];
        }
        if (j < last) even += model.probabilities[j] * outcome[model.indices[j]];
        q[i] = model.rewards[pair] + (even + odd);
    }
}

// value = max over the pairs of a state, best = the first pair that attains it.
inline void best_actions(const Model& model, const double* q, int64_t lo, int64_t hi, double* value, int64_t* best) {
    for (int64_t s = lo; s < hi; ++s) {
        double top = -INFINITE;
        int64_t where = model.state_ptr[s];
        for (int64_t pair = model.state_ptr[s]; pair < model.state_ptr[s + 1]; ++pair) {
            if (q[pair] > top) {
                top = q[pair];
                where = pair;
            }
        }
        value[s] = top;
        best[s] = where;
    }
}

// One Bellman sweep over the states lo..hi, in chunks whose q stays in the cache.
template <class Set>
void sweep(const Set& set, const Model& model, Levels levels, const double* outcome, int64_t lo, int64_t hi,
           double* memory, double* q, double* value, int64_t* best) {
    constexpr int64_t CHUNK = 256;
    for (int64_t first = lo; first < hi; first += CHUNK) {
        const int64_t last = first + CHUNK < hi ? first + CHUNK : hi;
        worst_values(set, model, levels, outcome, PairList{nullptr}, model.state_ptr[first], model.state_ptr[last],
                     memory, q);
        best_actions(model, q, first, last, value, best);
    }
}

// lower <= r + worst case <= upper, certified: dual values bound from below, and by concavity from above; both are
// widened by rounding. `scale` bounds |r| and |discount v|.
template <class Set>
void bracket_pairs(const Set& set, const Model& model, Levels levels, const double* outcome, double scale, int64_t lo,
                   int64_t hi, const double* memory, double* lower, double* upper) {
    const auto write = [&](int64_t first, const int64_t* pairs, int count, const auto& rows, const auto& level,
                           const auto& solved) {
        using T = std::remove_cvref_t<decltype(rows.lowest)>;
        // The rounding of a sum of n terms; n is the row's own length, not its block's.
        T terms{};
        for (int l = 0; l < count; ++l)
            set_lane(terms, l, 0.5 * static_cast<double>(model.indptr[pairs[l] + 1] - model.indptr[pairs[l]]) + 4.0);
        Bounds<T> bounds{};
        if (solved.room == Room::SOME) {
            bounds = set.bounds(rows, level, solved, terms);
        } else if (solved.room == Room::NONE) {
            bounds = {rows.mean_rise - mean_slack(rows, terms), rows.mean_rise + mean_slack(rows, terms)};
        } else if constexpr (std::is_same_v<T, double>) {
            bounds = within_trivial_bounds(rows, terms, 0.0, set.vertex_slack(rows, level, terms));
        }
        for (int l = 0; l < count; ++l) {
            const double reward = model.fixed_reward(pairs[l]), base = reward + lane(rows.lowest, l);
            const double rounding = 4.0 * EPS * scale;
            lower[first + l] = base + lane(bounds.lower, l) - rounding;
            upper[first + l] = base + lane(bounds.upper, l) + rounding;
        }
    };
    solve_pairs(set, model, levels, outcome, PairList{nullptr}, lo, hi, memory, Accuracy::EXACT, write);
}

}  // namespace robustmdp
