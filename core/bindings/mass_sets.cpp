#include "../ambiguity/filling.hpp"

#include "sets.hpp"

namespace robustmdp {

namespace {

// Numbers of each transition, kept alive.
struct WeightedL1Arrays : WeightedL1 {
    Numbers by_transition, by_state;

    WeightedL1Arrays(Numbers by_transition, Numbers by_state) : by_transition(by_transition), by_state(by_state) {
        weights = by_transition.data();
        state_weights = by_state.data();
    }
    size_t column_length() const { return by_transition.size(); }
    size_t added_length() const { return by_state.size(); }
};

// The last row of a table follows the first one.
struct IntervalArrays : Interval {
    Table<const double> table;

    explicit IntervalArrays(Table<const double> given) : table(given) {
        require(given.shape(0) == 2, "an interval has two rows of bounds");
        lower = table.data();
        upper = lower + table.shape(1);
    }
    size_t column_length() const { return table.shape(1); }
};

template <class Set, class... Parameters> void bind_both(nb::module_& m, const std::string& name) {
    bind_set<Set>(m, name).def(nb::init<Parameters...>());
    bind_noise_set<Set>(m, name);
}

template <class Ball> using StateBall = SharedBudget<BallProjection<Ball>, false>;

}  // namespace

void bind_mass_sets(nb::module_& m) {
    bind_both<IntervalArrays, Table<const double>>(m, "Interval");
    bind_both<WeightedL1Arrays, Numbers, Numbers>(m, "WeightedL1");
    bind_both<LargestChange>(m, "LargestChange");
    bind_both<Euclidean>(m, "Euclidean");
    bind_both<Moved>(m, "Moved");
    bind_both<Tail>(m, "Tail");
    bind_both<Contamination>(m, "Contamination");
    bind_state_set<StateBall<Euclidean>>(m, "StateEuclidean").def(nb::init<>());
    bind_state_set<StateBall<WeightedL1Arrays>>(m, "StateWeightedL1")
        .def("__init__", [](StateBall<WeightedL1Arrays>* self, Numbers by_transition) {
            using Rows = BallProjection<WeightedL1Arrays>;
            new (self) StateBall<WeightedL1Arrays>(Rows(WeightedL1Arrays(by_transition, Numbers())));
        });
}

}  // namespace robustmdp
