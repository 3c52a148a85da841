// Sets with numbers of their own for each transition, kept alive.
#pragma once

#include "../ambiguity/filling.hpp"
#include "../ambiguity/weighted_l1.hpp"
#include "arrays.hpp"

namespace robustmdp {

struct WeightedL1Arrays : WeightedL1 {
    Numbers by_transition, by_state;

    WeightedL1Arrays(Numbers by_transition, Numbers by_state) : by_transition(by_transition), by_state(by_state) {
        weights = by_transition.data();
        state_weights = by_state.data();
    }
    size_t column_length() const { return by_transition.size(); }
    size_t added_length() const { return by_state.size(); }
};

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The last row of a table follows the first one.
struct IntervalArrays : Interval {
    Table table;

    explicit IntervalArrays(Table given) : table(given) {
        require(given.shape(0) == 2, "an interval has two rows of bounds");
        lower = table.data();
        upper = lower + table.shape(1);
    }
    size_t column_length() const { return table.shape(1); }
};

}  // namespace robustmdp
