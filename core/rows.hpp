// CSR rows, and several of them side by side.
#pragma once

#include "lanes.hpp"

#include <vector>

namespace robustmdp {

// The rows of all (state, action) pairs; state s owns the pairs state_ptr[s]..state_ptr[s+1]. The successor n_states
// is the end.
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

    // The part of the reward that does not depend on nature.
    double fixed_reward(int64_t pair) const { return rewards_on_successors ? 0.0 : rewards[pair]; }
};

// The successors of the rows that come next: their outcomes are asked for while others are computed with.
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

    T mass(int64_t j) const { return load<T>(p + j * stride); }
    T outcome(int64_t j) const { return load<T>(x + j * stride); }
    // x - min x
    T rise(int64_t j) const { return outcome(j) - lowest; }
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

constexpr int64_t LONG = 64;  // so long a row is loaded well as it is

// Ask for what a loop over rows will read next: the hardware's own guesses fall behind where outcomes miss the cache.
// Inline, because compilers drop calls of functions without an effect.
[[gnu::always_inline]] inline void prefetch_rows(const Model& model, int64_t at) {
    constexpr int64_t AHEAD = 256;  // transitions
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

// Work space for WIDTH rows of a model, filled from CSR.
class Block {
public:
    explicit Block(int64_t longest_row) : storage_(2 * WIDTH * longest_row + WIDTH) {
        const auto address = reinterpret_cast<uintptr_t>(storage_.data());
        p_ = storage_.data() + ((32 - address % 32) % 32) / sizeof(double);
        x_ = p_ + WIDTH * longest_row;
    }

    // Side by side: the rows of WIDTH pairs, after which the next ones may follow. `outcome` is discount * v with the
    // end's 0 last.
    void fill(const Model& model, const double* outcome, const int64_t* pairs, bool in_order) {
        for (int l = 0; l < WIDTH; ++l) {
            start_[l] = model.indptr[pairs[l]];
            length_[l] = model.indptr[pairs[l] + 1] - start_[l];
        }
        int64_t common = length_[0], longest = length_[0];
        for (int l = 1; l < WIDTH; ++l) {
            common = length_[l] < common ? length_[l] : common;
            longest = length_[l] > longest ? length_[l] : longest;
        }
        if (common < LONG)
            for (int64_t j = 0; j < WIDTH * common; j += 8) prefetch_rows(model, start_[0] + j);
        turn_probabilities(model, common);
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
    }

    const Rows<Lanes>& side_by_side() const { return rows_; }
    Rows<double> row(int l) const { return make_rows<double>(p_ + l, x_ + l, length_[l], WIDTH); }
    // Room for as many numbers as the block's outcomes.
    double* room() { return p_; }

private:
    void turn_probabilities(const Model& model, int64_t common) {
        const double *p0 = model.probabilities + start_[0], *p1 = model.probabilities + start_[1];
        const double *p2 = model.probabilities + start_[2], *p3 = model.probabilities + start_[3];
        int64_t j = 0;
        for (; j + WIDTH <= common; j += WIDTH) {
            Lanes a = load_loose(p0 + j), b = load_loose(p1 + j), c = load_loose(p2 + j), d = load_loose(p3 + j);
            turn(a, b, c, d);
            store(p_ + j * WIDTH, a);
            store(p_ + (j + 1) * WIDTH, b);
            store(p_ + (j + 2) * WIDTH, c);
            store(p_ + (j + 3) * WIDTH, d);
        }
        for (; j < common; ++j) store(p_ + j * WIDTH, Lanes{p0[j], p1[j], p2[j], p3[j]});
    }

    // The outcomes that all rows have, and what `make_rows` says of them.
    template <bool REWARDS_ON_SUCCESSORS> void gather(const Model& model, const double* outcome, int64_t common) {
        const int32_t *i0 = model.indices + start_[0], *i1 = model.indices + start_[1];
        const int32_t *i2 = model.indices + start_[2], *i3 = model.indices + start_[3];
        const double *r0 = model.rewards + start_[0], *r1 = model.rewards + start_[1];
        const double *r2 = model.rewards + start_[2], *r3 = model.rewards + start_[3];
        const auto take = [&](int64_t j) {
            Lanes x{outcome[i0[j]], outcome[i1[j]], outcome[i2[j]], outcome[i3[j]]};
            if (REWARDS_ON_SUCCESSORS) x += Lanes{r0[j], r1[j], r2[j], r3[j]};
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
            if (model.rewards_on_successors) x_[j * WIDTH + l] += model.rewards[at];
        }
        for (int64_t j = length_[l]; j < longest; ++j) {
            p_[j * WIDTH + l] = 0.0;
            x_[j * WIDTH + l] = x_[l];
        }
    }

    std::vector<double> storage_;
    double *p_, *x_;
    int64_t start_[WIDTH], length_[WIDTH];
    Rows<Lanes> rows_{};
};

}  // namespace robustmdp
