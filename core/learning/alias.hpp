// Drawing from rows of probabilities in constant time: Walker's alias tables, 12 bytes per entry.
//
// A row of n outcomes keeps, for each of n equally likely columns, the probability of staying in it and the outcome to
// go to otherwise.
#pragma once

#include <cstdint>
#include <vector>

namespace robustmdp {

struct AliasTable {
    std::vector<double> keep;
    std::vector<int32_t> other;  // counted from the row's first entry

    bool empty() const { return keep.empty(); }

    // Vose's method; rows sum to about 1.
    void fill(const int64_t* indptr, int64_t n_rows, const double* p) {
        keep.resize(static_cast<uint64_t>(indptr[n_rows]));
        other.resize(keep.size());
        std::vector<int32_t> small, large;
        for (int64_t row = 0; row < n_rows; ++row)
            fill_row(indptr[row], indptr[row + 1] - indptr[row], p, small, large);
    }

    // An entry of the row that starts at `first`, from one uniform number: its column, then its coin.
    int64_t draw(int64_t first, int64_t size, double u) const {
        const double scaled = u * static_cast<double>(size);
        const int64_t column =
            static_cast<int64_t>(scaled);  // < size, for u <= 1 - 2^-53 and rows are shorter than 2^53
        const int64_t partner = other[first + column];
        // Without a branch, which would be guessed wrongly as often as not.
        const int64_t stays = scaled - static_cast<double>(column) < keep[first + column];
        return first + partner + (column - partner) * stays;
    }

private:
    void fill_row(int64_t first, int64_t size, const double* p, std::vector<int32_t>& small,
                  std::vector<int32_t>& large) {
        double total = 0.0;
        for (int64_t j = 0; j < size; ++j) total += p[first + j];
        small.clear();
        large.clear();
        for (int32_t j = 0; j < size; ++j) {
            keep[first + j] = p[first + j] * static_cast<double>(size) / total;
            other[first + j] = j;
            (keep[first + j] < 1.0 ? small : large).push_back(j);
        }
        while (!small.empty() && !large.empty()) {
            const int32_t poor = small.back(), rich = large.back();
            small.pop_back();
            other[first + poor] = rich;
            keep[first + rich] -= 1.0 - keep[first + poor];
            if (keep[first + rich] < 1.0) {
                large.pop_back();
                small.push_back(rich);
            }
        }
        for (const int32_t j : small) keep[first + j] = 1.0;  // what rounding left over
        for (const int32_t j : large) keep[first + j] = 1.0;
    }
};

}  // namespace robustmdp
