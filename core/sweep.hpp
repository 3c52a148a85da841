// Bellman loops over many pairs, templates over the set. A call owns the rows lo..hi of its outputs, so that any split
// over threads gives equal bits.
#pragma once

#include "ambiguity/nominal.hpp"

#include <bit>
#include <type_traits>

namespace robustmdp {

// One level for all pairs or states, or one for each.
struct Levels {
    const double* values;
    bool shared;

    double operator[](int64_t i) const { return values[shared ? 0 : i]; }
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
    if (Set::MEMORY > 0 && !all(solved.converged)) {
        T unknown[Set::MEMORY + 1];
        for (T& number : unknown) number = broadcast<T>(NOT_A_NUMBER);
        const Solved<T> again = set.solve(rows, level, unknown, accuracy, COLD_PASSES);
        const Mask<T> first = solved.converged;
        solved.value = select(first, solved.value, again.value);
        solved.distance = select(first, solved.distance, again.distance);
        solved.weight = select(first, solved.weight, again.weight);
        solved.base = select(first, solved.base, again.base);
        solved.converged |= again.converged;
    }
    return solved;
}

template <class Set>
inline Solved<double> solve_row(const Set& set, const Rows<double>& row, double level,
                                [[maybe_unused]] const double* start, Accuracy accuracy) {
    const Room room = Set::room(level);
    if (room != Room::SOME) return trivial(row, room);
    if constexpr (!Set::ALONE) {
        const Solved<double> solved = solve_rows(set, row, level, start, accuracy);
        if (solved.converged) return solved;
    }
    return set.solve_alone(row, level, accuracy);
}

constexpr int64_t WINDOW = 256;

// order = first..first + count, rows of like length (to an eighth) next to each other, so that little is padded. False,
// and nothing done, where that is not worth the jumps.
inline bool order_by_length(const Model& model, PairList list, int64_t first, int64_t count, int64_t* order) {
    constexpr int64_t SHORT = 8;
    if (model.longest_row <= SHORT || model.indptr[model.n_pairs] == model.n_pairs * model.longest_row) return false;
    int place[8 * 64 + 1] = {};  // where the next row of a kind goes
    int kind[WINDOW], highest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t pair = list[first + i];
        const uint64_t length = static_cast<uint64_t>(model.indptr[pair + 1] - model.indptr[pair]);
        const int digits = std::bit_width(length);
        kind[i] =
            digits > 3 ? 8 * (digits - 3) + static_cast<int>(length >> (digits - 4) & 7) : static_cast<int>(length);
        ++place[kind[i] + 1];
        highest = kind[i] > highest ? kind[i] : highest;
    }
    for (int k = 1; k <= highest; ++k) place[k] += place[k - 1];
    for (int64_t i = 0; i < count; ++i) order[place[kind[i]]++] = first + i;
    return true;
}

// WIDTH pairs side by side; where fewer are left, the last one is repeated.
struct Group {
    int64_t first;         // place in the list
    const int64_t* order;  // places in the list, where they are not first, first + 1, ...
    int count;
    bool adjacent;  // all lanes taken, by neighbours
    int64_t pairs[WIDTH];

    Group(PairList list, int64_t first, int64_t left, const int64_t* order)
        : first(first), order(order), count(left < WIDTH ? static_cast<int>(left) : WIDTH),
          adjacent(!list.listed && !order && count == WIDTH) {
        for (int l = 0; l < WIDTH; ++l) pairs[l] = list[place(l < count ? l : count - 1)];
    }

    int64_t place(int l) const { return order ? order[l] : first + l; }

    // How many pairs an answer in T is about: all of them, or one.
    template <class T> int lanes() const { return sizeof(T) == sizeof(double) ? 1 : count; }

    // Numbers that belong to the pairs.
    Lanes load(const double* numbers) const {
        return adjacent ? robustmdp::load<Lanes>(numbers + pairs[0])
                        : Lanes{numbers[pairs[0]], numbers[pairs[1]], numbers[pairs[2]], numbers[pairs[3]]};
    }
    void store(double* numbers, Lanes value) const {
        if (adjacent) return robustmdp::store(numbers + pairs[0], value);
        for (int l = 0; l < count; ++l) numbers[pairs[l]] = value[l];
    }

    // Numbers that belong to places in the list.
    void store_listed(double* numbers, Lanes value) const {
        if (!order && count == WIDTH) return robustmdp::store(numbers + first, value);
        for (int l = 0; l < count; ++l) numbers[place(l)] = value[l];
    }
};

// Solve the rows of a group and call use(lane, rows, level, solved): once for all lanes, or for each lane by itself
// where one of them needs more work. `memory` holds n_pairs numbers, Set::MEMORY times.
template <class Set, class Use>
inline void solve_group(const Set& set, const Model& model, Block& block, const Group& group, Levels levels,
                        const double* memory, Accuracy accuracy, Use use) {
    constexpr int M = Set::MEMORY;
    const Lanes level = levels.shared ? broadcast<Lanes>(levels.values[0]) : group.load(levels.values);
    Lanes start[M + 1];
    for (int m = 0; m < M; ++m) start[m] = group.load(memory + m * model.n_pairs);
    const auto alone = [&](int l) {
        double from[M + 1];
        for (int m = 0; m < M; ++m) from[m] = start[m][l];
        return solve_row(set, block.row(l), level[l], from, accuracy);
    };
    if constexpr (!Set::ALONE) {
        bool ordinary = Set::room(level[0]) == Room::SOME;
        for (int l = 1; l < WIDTH && !levels.shared; ++l) ordinary &= Set::room(level[l]) == Room::SOME;
        const Rows<Lanes>& rows = block.side_by_side();
        if (ordinary && !block.has_added() && set.runs_side_by_side(rows, level)) {
            const Solved<Lanes> solved = solve_rows(set, rows, level, start, accuracy);
            if (all(solved.converged) && set.answers_side_by_side(rows, solved)) return use(0, rows, level, solved);
            for (int l = 0; l < group.count; ++l)
                // From the start again, so that a row does not depend on its neighbours.
                use(l, block.row(l), level[l], solved.converged[l] ? pick_lane(solved, l) : alone(l));
            return;
        }
    }
    for (int l = 0; l < group.count; ++l) use(l, block.row(l), level[l], alone(l));
}

template <class Set> Block make_block(const Model& model) {
    return Block(length_with_added<Set>(model, model.longest_row), Set::COLUMNS);
}

// Visit pairs lo..hi in groups: use(group, lane, rows, level, solved).
template <class Set, class Use>
inline void solve_pairs(const Set& set, const Model& model, Levels levels, const double* outcome, PairList list,
                        int64_t lo, int64_t hi, const double* memory, Accuracy accuracy, Block& block, Use use) {
    const auto prefetch_numbers = [&](int64_t pair) {
        if (!model.rewards_on_successors) __builtin_prefetch(model.rewards + pair);
        for (int m = 0; m < Set::MEMORY; ++m) __builtin_prefetch(memory + m * model.n_pairs + pair, 1);
    };
    int64_t order[WINDOW];
    for (int64_t window = lo; window < hi; window += WINDOW) {
        const int64_t count = hi - window < WINDOW ? hi - window : WINDOW;
        const bool ordered = order_by_length(model, list, window, count, order);
        const int64_t known = ordered ? count : hi - window;
        const auto pair_at = [&](int64_t i) { return list[ordered ? order[i] : window + i]; };
        for (int64_t i = 0; i < count; i += WIDTH) {
            const Group group(list, window + i, count - i, ordered ? order + i : nullptr);
            block.fill(set, model, outcome, group.pairs, group.adjacent);
            if (ordered || list.listed) {
                for (int64_t next = i + PAIRS_AHEAD; next < i + PAIRS_AHEAD + WIDTH && next < known; ++next) {
                    prefetch_row(model, pair_at(next));
                    prefetch_numbers(pair_at(next));
                }
                for (int64_t next = i + 2 * PAIRS_AHEAD; next < i + 2 * PAIRS_AHEAD + WIDTH && next < known; ++next)
                    __builtin_prefetch(model.indptr + pair_at(next));
            } else {
                prefetch_numbers(group.pairs[0] + 2 * PAIRS_AHEAD);
            }
            solve_group(set, model, block, group, levels, memory, accuracy,
                        [&](int l, const auto& rows, const auto& level, const auto& solved) {
                            use(group, l, rows, level, solved);
                        });
        }
    }
}

// q = r + worst case; each pair's memory is renewed. Inlining would compile every set once per caller.
template <class Set>
[[gnu::noinline]] void worst_values(const Set& set, const Model& model, Levels levels, const double* outcome,
                                    PairList list, int64_t lo, int64_t hi, double* memory, double* q, Block& block) {
    const auto write = [&](const Group& group, int l, const auto& rows, const auto&, const auto& solved) {
        using T = std::remove_cvref_t<decltype(rows.lowest)>;
        const T value = model.sign * (rows.lowest + solved.value);
        T renewed[Set::MEMORY + 1];
        set.remember(rows, solved, renewed);
        if constexpr (std::is_same_v<T, Lanes>) {
            const Lanes reward = model.rewards_on_successors ? Lanes{} : group.load(model.rewards);
            group.store_listed(q, reward + value);
            for (int m = 0; m < Set::MEMORY; ++m) group.store(memory + m * model.n_pairs, renewed[m]);
        } else {
            q[group.place(l)] = model.fixed_reward(group.pairs[l]) + value;
            for (int m = 0; m < Set::MEMORY; ++m) memory[m * model.n_pairs + group.pairs[l]] = renewed[m];
        }
    };
    solve_pairs(set, model, levels, outcome, list, lo, hi, memory, Accuracy::FAST, block, write);
}

// q = r + E outcome, without a detour through a block.
template <>
inline void worst_values(const Nominal&, const Model& model, Levels, const double* outcome, PairList list, int64_t lo,
                         int64_t hi, double*, double* q, Block&) {
    for (int64_t i = lo; i < hi; ++i) {
        const int64_t pair = list[i];
        const int64_t first = model.indptr[pair], last = model.indptr[pair + 1];
        if (list.listed)
            prefetch_listed(model, list.listed, i, hi);
        else if (last - first < LONG)
            for (int64_t at = first; at < last; at += 8) prefetch_rows(model, at);
        double even = 0.0, odd = 0.0;
        int64_t j = first;
        if (model.rewards_on_successors) {
            for (; j < last; ++j)
                even += model.probabilities[j] * (model.sign * model.rewards[j] + outcome[model.indices[j]]);
            q[i] = model.sign * even;
            continue;
        }
        for (; j + 1 < last; j += 2) {
            even += model.probabilities[j] * outcome[model.indices[j]];
            odd += model.probabilities[j + 1] * outcome[model.indices[j + 1]];
        }
        if (j < last) even += model.probabilities[j] * outcome[model.indices[j]];
        q[i] = model.rewards[pair] + model.sign * (even + odd);
    }
}

// value = max over the pairs of a state, best = the first pair that attains it.
inline void best_actions(const Model& model, const double* q, int64_t lo, int64_t hi, double* value, int64_t* best) {
    for (int64_t s = lo; s < hi; ++s) {
        double top = -INFINITE;
        int64_t where = model.state_ptr[s];
        for (int64_t pair = model.state_ptr[s]; pair < model.state_ptr[s + 1]; ++pair) {
            const bool better = q[pair] > top;
            where = better ? pair : where;
            top = better ? q[pair] : top;
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
    Block block = make_block<Set>(model);
    for (int64_t first = lo; first < hi; first += CHUNK) {
        const int64_t last = first + CHUNK < hi ? first + CHUNK : hi;
        worst_values(set, model, levels, outcome, PairList{nullptr}, model.state_ptr[first], model.state_ptr[last],
                     memory, q, block);
        best_actions(model, q, first, last, value, best);
    }
}

// lower <= r + worst case <= upper, certified: dual values bound from below, and by concavity from above; both are
// widened by rounding. `scale` bounds |r| and |discount v|.
template <class Set>
void bracket_pairs(const Set& set, const Model& model, Levels levels, const double* outcome, double scale, int64_t lo,
                   int64_t hi, const double* memory, double* lower, double* upper) {
    const auto write = [&](const Group& group, int first, const auto& rows, const auto& level, const auto& solved) {
        using T = std::remove_cvref_t<decltype(rows.lowest)>;
        const int count = group.lanes<T>();
        const int64_t* pairs = group.pairs + first;
        // The rounding of a sum of n terms; n is the row's own length, not its block's.
        T terms{};
        for (int l = 0; l < count; ++l) {
            const int64_t length = model.indptr[pairs[l] + 1] - model.indptr[pairs[l]];
            set_lane(terms, l, 0.5 * static_cast<double>(length_with_added<Set>(model, length)) + 4.0);
        }
        Bounds<T> bounds{};
        if (solved.room == Room::SOME) {
            bounds = set.bounds(rows, level, solved, terms);
        } else if (solved.room == Room::NONE) {
            bounds = {rows.mean_rise - mean_slack(rows, terms), rows.mean_rise + mean_slack(rows, terms)};
        } else if constexpr (std::is_same_v<T, double>) {
            bounds = within_trivial_bounds(rows, terms, 0.0, set.vertex_slack(rows, level, terms));
        }
        for (int l = 0; l < count; ++l) {
            const int64_t place = group.place(first + l);
            const double base = model.fixed_reward(pairs[l]) + model.sign * lane(rows.lowest, l);
            const double rounding = 4.0 * EPS * scale;
            const bool helps = model.sign < 0.0;
            lower[place] = base + model.sign * lane(helps ? bounds.upper : bounds.lower, l) - rounding;
            upper[place] = base + model.sign * lane(helps ? bounds.lower : bounds.upper, l) + rounding;
        }
    };
    Block block = make_block<Set>(model);
    solve_pairs(set, model, levels, outcome, PairList{nullptr}, lo, hi, memory, Accuracy::EXACT, block, write);
}

}  // namespace robustmdp
