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

    T mass(int64_t j) const { return load<T>(p + j * stride); }
    T outcome(int64_t j) const { return load<T>(x + j * stride); }
    // x - min x
    T rise(int64_t j) const { return outcome(j) - lowest; }
};

template <class T> inline Rows<T> make_rows(const double* p, const double* x, int64_t length, int64_t stride) {
    const T first = load<T>(x);
    T lowest = first, highest = first, mean = broadcast<T>(0.0);
    for (int64_t j = 1; j < length; ++j) {
        const T value = load<T>(x + j * stride);
        lowest = smaller(value, lowest);
        highest = larger(value, highest);
        mean += load<T>(p + j * stride) * (value - first);  // centred, so that a common offset costs no digits
    }
    return {p, x, length, stride, lowest, highest - lowest, larger(mean + (first - lowest), broadcast<T>(0.0))};
}

// The mass of all minimisers of x.
template <class T> inline T lowest_mass(const Rows<T>& rows) {
    const T zero = broadcast<T>(0.0);
    T total = zero;
    for (int64_t j = 0; j < rows.length; ++j) total += select(rows.outcome(j) == rows.lowest, rows.mass(j), zero);
    return total;
}

// Work space for WIDTH rows of a model, filled from CSR.
class Block {
public:
    explicit Block(int64_t longest_row) : storage_(2 * WIDTH * longest_row + WIDTH) {
        const auto address = reinterpret_cast<uintptr_t>(storage_.data());
        p_ = storage_.data() + ((32 - address % 32) % 32) / sizeof(double);
        x_ = p_ + WIDTH * longest_row;
    }

    // Side by side: the rows of `count` <= WIDTH pairs; missing lanes repeat the last row. `outcome` is discount * v
    // with the end's 0 last.
    void fill(const Model& model, const double* outcome, const int64_t* pairs, int count) {
        for (int l = 0; l < WIDTH; ++l) {
            const int64_t pair = pairs[l < count ? l : count - 1];
            start_[l] = model.indptr[pair];
            length_[l] = model.indptr[pair + 1] - start_[l];
        }
        int64_t common = length_[0];
        longest_ = length_[0];
        for (int l = 1; l < WIDTH; ++l) {
            common = length_[l] < common ? length_[l] : common;
            longest_ = length_[l] > longest_ ? length_[l] : longest_;
        }
        gather_common(model, outcome, common);
        for (int l = 0; l < WIDTH; ++l) gather_rest(model, outcome, common, l);
    }

    // Ask for the outcomes of a row that will be filled soon; long rows find their own way into the cache.
    static void prefetch(const Model& model, const double* outcome, int64_t pair) {
        constexpr int64_t LONGEST = 32;
        const int64_t first = model.indptr[pair], last = model.indptr[pair + 1];
        for (int64_t j = first; j < last && j < first + LONGEST; ++j) __builtin_prefetch(outcome + model.indices[j]);
    }

    Rows<Lanes> side_by_side() const { return make_rows<Lanes>(p_, x_, longest_, WIDTH); }
    Rows<double> row(int l) const { return make_rows<double>(p_ + l, x_ + l, length_[l], WIDTH); }
    // Room for as many numbers as the block's outcomes.
    double* room() { return p_; }

private:
    void gather_common(const Model& model, const double* outcome, int64_t common) {
        const double *p0 = model.probabilities + start_[0], *p1 = model.probabilities + start_[1];
        const double *p2 = model.probabilities + start_[2], *p3 = model.probabilities + start_[3];
        const int32_t *i0 = model.indices + start_[0], *i1 = model.indices + start_[1];
        const int32_t *i2 = model.indices + start_[2], *i3 = model.indices + start_[3];
        for (int64_t j = 0; j < common; ++j) {
            store(p_ + j * WIDTH, Lanes{p0[j], p1[j], p2[j], p3[j]});
            store(x_ + j * WIDTH, Lanes{outcome[i0[j]], outcome[i1[j]], outcome[i2[j]], outcome[i3[j]]});
        }
        if (!model.rewards_on_successors) return;
        const double *r0 = model.rewards + start_[0], *r1 = model.rewards + start_[1];
        const double *r2 = model.rewards + start_[2], *r3 = model.rewards + start_[3];
        for (int64_t j = 0; j < common; ++j)
            store(x_ + j * WIDTH, load<Lanes>(x_ + j * WIDTH) + Lanes{r0[j], r1[j], r2[j], r3[j]});
    }

    void gather_rest(const Model& model, const double* outcome, int64_t common, int l) {
        for (int64_t j = common; j < length_[l]; ++j) {
            const int64_t at = start_[l] + j;
            p_[j * WIDTH + l] = model.probabilities[at];
            x_[j * WIDTH + l] = outcome[model.indices[at]];
            if (model.rewards_on_successors) x_[j * WIDTH + l] += model.rewards[at];
        }
        for (int64_t j = length_[l]; j < longest_; ++j) {
            p_[j * WIDTH + l] = 0.0;
            x_[j * WIDTH + l] = x_[l];
        }
    }

    std::vector<double> storage_;
    double *p_, *x_;
    int64_t start_[WIDTH], length_[WIDTH], longest_ = 0;
};

}  // namespace robustmdp
