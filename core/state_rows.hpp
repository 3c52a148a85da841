// The rows of one state's actions, side by side.
#pragma once

#include "rows.hpp"

#include <vector>

namespace robustmdp {

// WIDTH actions a block.
class StateRows {
public:
    StateRows(const Model& model, int columns) {
        const int64_t groups = (model.most_actions() + WIDTH - 1) / WIDTH;
        blocks_.reserve(groups);
        for (int64_t g = 0; g < groups; ++g) blocks_.emplace_back(model.longest_row, columns);
        for (auto* numbers : {&base_, &mean_, &terms_}) numbers->resize(groups * WIDTH);
        offset_.resize(groups * WIDTH + 1);
    }

    template <class Set> void fill(const Set& set, const Model& model, const double* outcome, int64_t state) {
        first_pair = model.state_ptr[state];
        count = static_cast<int>(model.state_ptr[state + 1] - first_pair);
        groups = (count + WIDTH - 1) / WIDTH;
        for (int g = 0; g < groups; ++g) {
            int64_t pairs[WIDTH];
            for (int l = 0; l < WIDTH; ++l) {
                const int a = WIDTH * g + l;
                pairs[l] = first_pair + (a < count ? a : count - 1);
            }
            const bool is_whole = WIDTH * (g + 1) <= count;
            blocks_[g].fill(set, model, outcome, pairs, is_whole);
            const Rows<Lanes>& rows = blocks_[g].side_by_side();
            for (int l = 0; l < WIDTH; ++l) {
                const int a = WIDTH * g + l;
                base_[a] = model.sign * model.fixed_reward(pairs[l]) + rows.lowest[l];
                mean_[a] = rows.mean_rise[l];
                terms_[a] = 0.5 * static_cast<double>(model.indptr[pairs[l] + 1] - model.indptr[pairs[l]]) + 4.0;
            }
        }
        for (int a = 0; a < count; ++a) offset_[a + 1] = offset_[a] + length(a);
        floor = base_[0];
        for (int a = 1; a < count; ++a) floor = larger(base_[a], floor);
        for (int a = 0; a < WIDTH * groups; ++a) base_[a] -= floor;
    }

    int64_t first_pair = 0;
    int count = 0, groups = 0;
    double floor = 0.0;  // the largest minimum: nature cannot bring the state below it

    const Rows<Lanes>& side_by_side(int g) const { return blocks_[g].side_by_side(); }
    Rows<double> row(int a) const { return blocks_[a / WIDTH].row(a % WIDTH); }
    int64_t length(int a) const { return blocks_[a / WIDTH].length(a % WIDTH); }
    int64_t offset(int a) const { return offset_[a]; }  // of row a, where the rows of all actions follow each other
    // z = floor + base + (x - min x): measured from the floor, near which answers have all their digits.
    double base(int a) const { return base_[a]; }
    double mean_rise(int a) const { return mean_[a]; }
    double mean(int a) const { return base_[a] + mean_[a]; }
    double terms(int a) const { return terms_[a]; }
    Lanes bases(int g) const { return load<Lanes>(&base_[WIDTH * g]); }
    Lanes mean_rises(int g) const { return load<Lanes>(&mean_[WIDTH * g]); }

    // The first action with the largest mean, and with the largest minimum.
    int best_mean() const {
        return first_largest([&](int a) { return mean(a); });
    }
    int best_minimum() const {
        return first_largest([&](int a) { return base(a); });
    }

private:
    template <class Number> int first_largest(Number number) const {
        int best = 0;
        for (int a = 1; a < count; ++a)
            if (number(a) > number(best)) best = a;
        return best;
    }

    std::vector<Block> blocks_;
    std::vector<double> base_, mean_, terms_;
    std::vector<int64_t> offset_;
};

// The policy that takes one action.
template <class Work> inline void choose_action(const StateRows& rows, int action, Work& work) {
    for (int a = 0; a < rows.count; ++a) work.share[a] = a == action ? 1.0 : 0.0;
}

}  // namespace robustmdp
