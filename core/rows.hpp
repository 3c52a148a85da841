// CSR rows, and several of them side by side.
#pragma once

#include "hulls.hpp"

#include <algorithm>
#include <vector>

namespace robustmdp {

// The rows of all (state, action) pairs; state s owns the pairs state_ptr[s]..state_ptr[s+1]. The successor n_columns
// is the end; where the states are a part of a larger model, rows lead to more states than they belong to.
struct Model {
    const int64_t* indptr;
    const int32_t* indices;
    const double* probabilities;
    const double* rewards;  // one per pair, or one per transition
    const int64_t* state_ptr;
    int64_t n_states;
    int64_t n_pairs;
    int64_t longest_row;
    bool rewards_on_successors;
    int64_t n_columns;
    double sign = 1.0;               // -1 where nature helps the player: outcomes then come negated
    const int32_t* added = nullptr;  // states that a set may add to a row, where it may add any
    int64_t added_count = 0;

    // The part of the reward that does not depend on nature.
    double fixed_reward(int64_t pair) const { return rewards_on_successors ? 0.0 : rewards[pair]; }

    bool has_successor(int64_t pair, int32_t state) const {  // rows of models with noise, unsorted, are never asked
        return std::binary_search(indices + indptr[pair], indices + indptr[pair + 1], state);
    }

    // The part that does, at successors that the model does not have: the mean.
    double added_reward(int64_t pair) const {
        double mean = 0.0;
        if (rewards_on_successors)
            for (int64_t at = indptr[pair]; at < indptr[pair + 1]; ++at) mean += probabilities[at] * rewards[at];
        return mean;
    }

    int64_t most_actions() const {
        int64_t most = 0;
        for (int64_t s = 0; s < n_states; ++s) most = std::max(state_ptr[s + 1] - state_ptr[s], most);
        return most;
    }
};

// The successors of the rows that come next: their outcomes are prefetched while others are computed with.
struct Ahead {
    const int32_t* indices = nullptr;  // as many as the rows side by side have entries, or none
    const double* outcome = nullptr;

    void prefetch(int64_t j) const {
        if (indices)
            for (int l = 0; l < WIDTH; ++l) __builtin_prefetch(outcome + indices[j * WIDTH + l]);
    }
};

// Rows p, x: T = Lanes holds four rows side by side, entry j of lane l at p[j * stride + l]; T = double is one row.
// Shorter rows are padded with probability 0 and an outcome of their own.
template <class T> struct Rows {
    const double* p;
    const double* x;
    int64_t length;
    int64_t stride;
    T lowest;     // min x
    T spread;     // max x - min x
    T mean_rise;  // E (x - min x)
    Ahead ahead;
    const double* columns = nullptr;  // what a set keeps for each transition, one column after the other
    int64_t column_size = 0;
    bool may_grow = false;           // whether entries of probability 0 can get mass
    Transport* transport = nullptr;  // work space of sets that move mass from one successor to another

    T mass(int64_t j) const { return load<T>(p + j * stride); }
    T outcome(int64_t j) const { return load<T>(x + j * stride); }
    // x - min x
    T rise(int64_t j) const { return outcome(j) - lowest; }
    T column(int k, int64_t j) const { return load<T>(columns + k * column_size + j * stride); }
};

// What is known of outcomes seen one after the other.
template <class T> struct Summary {
    T first, lowest, highest, mean;

    explicit Summary(T first) : first(first), lowest(first), highest(first), mean(broadcast<T>(0.0)) {}

    void add(T p, T x) {
        lowest = smaller(x, lowest);
        highest = larger(x, highest);
        mean = fused(p, x - first, mean);  // centred, so that a common offset costs no digits
    }

    Rows<T> rows(const double* p, const double* x, int64_t length, int64_t stride) const {
        return {p, x, length, stride, lowest, highest - lowest, larger(mean + (first - lowest), broadcast<T>(0.0)), {}};
    }
};

template <class T> inline Rows<T> make_rows(const double* p, const double* x, int64_t length, int64_t stride) {
    Summary<T> seen(load<T>(x));
    for (int64_t j = 1; j < length; ++j) seen.add(load<T>(p + j * stride), load<T>(x + j * stride));
    return seen.rows(p, x, length, stride);
}

// The mass of all minimisers of x.
template <class T> inline T lowest_mass(const Rows<T>& rows) {
    const T zero = broadcast<T>(0.0);
    T total = zero;
    for (int64_t j = 0; j < rows.length; ++j) total += select(rows.outcome(j) == rows.lowest, rows.mass(j), zero);
    return total;
}

// The largest rise in (low, high) that does not exceed their mean.
inline double middle_rise(const Rows<double>& row, double low, double high) {
    double total = 0.0, count = 0.0;
    for (int64_t j = 0; j < row.length; ++j) {
        const double d = row.rise(j);
        if (low < d && d < high) total += d, count += 1.0;
    }
    const double mean = total / count;
    double best = low, least = high;
    for (int64_t j = 0; j < row.length; ++j) {
        const double d = row.rise(j);
        if (!(low < d && d < high)) continue;
        least = smaller(d, least);
        if (d <= mean) best = larger(d, best);
    }
    return best > low ? best : least;  // rounding can put the mean below every outcome
}

// What most sets have in common; a set says what is different.
struct SetTraits {
    static constexpr int MEMORY = 0;                   // numbers per pair from which the next solve starts
    static constexpr int COLUMNS = 0;                  // numbers of its own for each transition
    static constexpr int64_t ADDED_PER_SUCCESSOR = 0;  // entries of an answer for receivers, where mass is transported
    static constexpr bool PRICED = false;              // whether nature pays for what a ball forbids
    static constexpr bool ADDS = false;                // whether rows may get successors that the model does not have
    static constexpr bool ALONE = false;               // whether rows are solved one by one
    static constexpr bool TRANSPORTS = false;          // whether mass moves from one successor to another
    static constexpr bool USES_MODEL = true;           // whether the model's probabilities count
    static constexpr bool CONTAINS_MODEL = true;       // whether the model's own distribution is in the set

    double vertex_slack(const Rows<double>&, double, double) const { return 0.0; }
    bool runs_side_by_side(const Rows<Lanes>&, Lanes) const { return true; }
    template <class T> bool answers_side_by_side(const Rows<Lanes>&, const T&) const { return true; }
    template <class T, class Solved> void remember(const Rows<T>&, const Solved&, T*) const {}
};

// How many entries a row of this length has for a set.
template <class Set> inline int64_t length_with_added(const Model& model, int64_t length) {
    return length + (Set::ADDS ? model.added_count : 0);
}

// Add `mass` to the minimisers of x, in proportion to p, or to the first one where none has any.
template <class T> inline void give_to_minimisers(const Rows<T>& rows, T mass, double* out, int64_t stride) {
    const T zero = broadcast<T>(0.0), known = lowest_mass(rows);
    T left = select(known > zero, zero, mass);
    for (int64_t j = 0; j < rows.length; ++j) {
        const Mask<T> lowest = rows.outcome(j) == rows.lowest;
        const T part = select(lowest & (known > zero), mass * rows.mass(j) / known, zero);
        const T whole = select(lowest, left, zero);
        left -= whole;
        store(out + j * stride, load<T>(out + j * stride) + (part + whole));
    }
}

// Add `mass` to the minimisers of x, in proportion to p.
template <class T> inline void share_among_minimisers(const Rows<T>& rows, T mass, double* out, int64_t stride) {
    const T known = lowest_mass(rows);
    for (int64_t j = 0; j < rows.length; ++j) {
        const T kept = load<T>(out + j * stride);
        store(out + j * stride, select(rows.outcome(j) == rows.lowest, kept + mass * (rows.mass(j) / known), kept));
    }
}

constexpr int64_t LONG = 64;  // so long a row is loaded well as it is

constexpr int64_t AHEAD = 256;  // transitions

// Ask for what a loop over rows will read next: the hardware's own guesses fall behind where outcomes miss the cache.
// Inline, because compilers drop calls of functions without an effect.
[[gnu::always_inline]] inline void prefetch_rows(const Model& model, int64_t at) {
    __builtin_prefetch(model.indices + at + AHEAD);
    __builtin_prefetch(model.probabilities + at + AHEAD, 0, 2);
}

// The same for one row that does not follow the last one.
[[gnu::always_inline]] inline void prefetch_row(const Model& model, int64_t pair) {
    const int64_t first = model.indptr[pair], length = model.indptr[pair + 1] - first;
    for (int64_t j = 0; j < length && j < LONG; j += 8) {
        __builtin_prefetch(model.indices + first + j);
        __builtin_prefetch(model.probabilities + first + j);
    }
}

constexpr int64_t PAIRS_AHEAD = 16;

// The same in a loop over a list of pairs: the rows soon to come, and where those after them begin.
[[gnu::always_inline]] inline void prefetch_listed(const Model& model, const int64_t* pairs, int64_t i, int64_t hi) {
    if (i + PAIRS_AHEAD < hi) {
        prefetch_row(model, pairs[i + PAIRS_AHEAD]);
        if (!model.rewards_on_successors) __builtin_prefetch(model.rewards + pairs[i + PAIRS_AHEAD]);
    }
    if (i + 2 * PAIRS_AHEAD < hi) __builtin_prefetch(model.indptr + pairs[i + 2 * PAIRS_AHEAD]);
}

// Work space for WIDTH rows of a model, filled from CSR.
class Block {
public:
    explicit Block(int64_t longest_row, int columns = 0)
        : storage_((2 + columns) * WIDTH * longest_row + WIDTH), size_(WIDTH * longest_row) {
        const auto address = reinterpret_cast<uintptr_t>(storage_.data());
        p_ = storage_.data() + ((32 - address % 32) % 32) / sizeof(double);
        x_ = p_ + size_;
    }

    // Side by side: the rows of WIDTH pairs, after which the next ones may follow. `outcome` is discount * v with the
    // end's 0 last.
    template <class Set>
    void fill([[maybe_unused]] const Set& set, const Model& model, const double* outcome, const int64_t* pairs,
              bool in_order) {
        for (int l = 0; l < WIDTH; ++l) {
            start_[l] = model.indptr[pairs[l]];
            length_[l] = model.indptr[pairs[l] + 1] - start_[l];
        }
        int64_t common = length_[0], longest = length_[0];
        for (int l = 1; l < WIDTH; ++l) {
            common = length_[l] < common ? length_[l] : common;
            longest = length_[l] > longest ? length_[l] : longest;
        }
        if (in_order && common < LONG)
            for (int64_t j = 0; j < WIDTH * common; j += 8) prefetch_rows(model, start_[0] + j);
        if constexpr (Set::USES_MODEL) turn_rows(model.probabilities, common, p_);
        if (model.rewards_on_successors)
            gather<true>(model, outcome, common);
        else
            gather<false>(model, outcome, common);
        if (longest > common) {
            for (int l = 0; l < WIDTH; ++l) gather_rest(model, outcome, common, longest, l);
            rows_ = make_rows<Lanes>(p_, x_, longest, WIDTH);
        }
        const int64_t end = start_[WIDTH - 1] + length_[WIDTH - 1];
        if (in_order && longest < LONG && end + WIDTH * longest <= model.indptr[model.n_pairs])
            rows_.ahead = {model.indices + end, outcome};
        if constexpr (Set::COLUMNS > 0) fill_columns(set, common, longest);
        if constexpr (Set::ADDS) {
            has_added_ = model.added_count > 0;
            for (int l = 0; l < WIDTH; ++l) append_added(set, model, outcome, pairs[l], l);
        }
        if constexpr (Set::TRANSPORTS)
            for (int l = 0; l < WIDTH; ++l) set.find_hulls(model, outcome, pairs[l], x_ + l, l, transports_);
    }

    const Rows<Lanes>& side_by_side() const { return rows_; }
    bool has_added() const { return has_added_; }
    int64_t length(int l) const { return length_[l]; }

    Rows<double> row(int l) const {
        Rows<double> row = make_rows<double>(p_ + l, x_ + l, length_[l], WIDTH);
        row.columns = x_ + size_ + l;
        row.column_size = size_;
        row.may_grow = has_added_;
        row.transport = &transports_.rows[l];
        return row;
    }
    // Room for as many numbers as the block's outcomes.
    double* room() { return p_; }

private:
    // The entries that all rows have, from CSR to lanes.
    void turn_rows(const double* from, int64_t common, double* to) {
        const double *p0 = from + start_[0], *p1 = from + start_[1], *p2 = from + start_[2], *p3 = from + start_[3];
        int64_t j = 0;
        for (; j + WIDTH <= common; j += WIDTH) {
            Lanes a = load<Lanes>(p0 + j), b = load<Lanes>(p1 + j), c = load<Lanes>(p2 + j), d = load<Lanes>(p3 + j);
            turn(a, b, c, d);
            store(to + j * WIDTH, a);
            store(to + (j + 1) * WIDTH, b);
            store(to + (j + 2) * WIDTH, c);
            store(to + (j + 3) * WIDTH, d);
        }
        for (; j < common; ++j) store(to + j * WIDTH, Lanes{p0[j], p1[j], p2[j], p3[j]});
    }

    template <class Set> void fill_columns(const Set& set, int64_t common, int64_t longest) {
        rows_.columns = x_ + size_;
        rows_.column_size = size_;
        for (int k = 0; k < Set::COLUMNS; ++k) {
            double* to = x_ + (1 + k) * size_;
            if (common < LONG)
                for (int64_t j = 0; j < WIDTH * common; j += 8)
                    __builtin_prefetch(set.column(k) + start_[0] + j + AHEAD, 0, 2);
            turn_rows(set.column(k), common, to);
            for (int l = 0; l < WIDTH; ++l)
                for (int64_t j = common; j < longest; ++j)
                    to[j * WIDTH + l] = j < length_[l] ? set.column(k)[start_[l] + j] : 0.0;
        }
    }

    // Successors that the set may add, behind the row's own.
    template <class Set>
    void append_added([[maybe_unused]] const Set& set, const Model& model, const double* outcome, int64_t pair, int l) {
        const double reward = model.sign * model.added_reward(pair);
        for (int64_t k = 0; k < model.added_count; ++k) {
            const int32_t state = model.added[k];
            if (model.has_successor(pair, state)) continue;
            const int64_t at = length_[l]++ * WIDTH + l;
            p_[at] = 0.0;
            x_[at] = outcome[state] + reward;
            if constexpr (Set::COLUMNS > 0)
                for (int c = 0; c < Set::COLUMNS; ++c) x_[(1 + c) * size_ + at] = set.added_column(c, state);
        }
    }

    // The outcomes that all rows have, summarised as by `make_rows`.
    template <bool REWARDS_ON_SUCCESSORS> void gather(const Model& model, const double* outcome, int64_t common) {
        const int32_t *i0 = model.indices + start_[0], *i1 = model.indices + start_[1];
        const int32_t *i2 = model.indices + start_[2], *i3 = model.indices + start_[3];
        const double *r0 = model.rewards + start_[0], *r1 = model.rewards + start_[1];
        const double *r2 = model.rewards + start_[2], *r3 = model.rewards + start_[3];
        const auto take = [&](int64_t j) {
            Lanes x{outcome[i0[j]], outcome[i1[j]], outcome[i2[j]], outcome[i3[j]]};
            if (REWARDS_ON_SUCCESSORS) x += model.sign * Lanes{r0[j], r1[j], r2[j], r3[j]};
            store(x_ + j * WIDTH, x);
            return x;
        };
        const Lanes first = take(0);
        Summary<Lanes> seen(first);
        for (int64_t j = 1; j < common; ++j) seen.add(load<Lanes>(p_ + j * WIDTH), take(j));
        rows_ = seen.rows(p_, x_, common, WIDTH);
    }

    void gather_rest(const Model& model, const double* outcome, int64_t common, int64_t longest, int l) {
        for (int64_t j = common; j < length_[l]; ++j) {
            const int64_t at = start_[l] + j;
            p_[j * WIDTH + l] = model.probabilities[at];
            x_[j * WIDTH + l] = outcome[model.indices[at]];
            if (model.rewards_on_successors) x_[j * WIDTH + l] += model.sign * model.rewards[at];
        }
        for (int64_t j = length_[l]; j < longest; ++j) {
            p_[j * WIDTH + l] = 0.0;
            x_[j * WIDTH + l] = x_[l];
        }
    }

    std::vector<double> storage_;
    int64_t size_;
    double *p_, *x_;
    int64_t start_[WIDTH], length_[WIDTH];
    bool has_added_ = false;
    mutable TransportSpace transports_;  // work space of the rows
    Rows<Lanes> rows_{};
};

}  // namespace robustmdp
