#include "../ambiguity/contamination.hpp"
#include "../ambiguity/euclidean.hpp"
#include "../ambiguity/filling.hpp"
#include "../ambiguity/weighted_l1.hpp"

#include "sets.hpp"
#include "weights.hpp"

namespace robustmdp {

namespace {

using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Sets with numbers of their own for each transition, kept alive; the last row of a table follows the first one.
struct IntervalArrays : Interval {
    Table table;

    explicit IntervalArrays(Table given) : table(given) {
        require(given.shape(0) == 2, "an interval has two rows of bounds");
        lower = table.data();
        upper = lower + table.shape(1);
    }
    size_t column_length() const { return table.shape(1); }
};

}  // namespace

void bind_mass_sets(nb::module_& m) {
    bind_set<IntervalArrays>(m, "Interval").def(nb::init<Table>());
    bind_set<WeightedL1Arrays>(m, "WeightedL1").def(nb::init<Numbers, Numbers>());
    bind_set<LargestChange>(m, "LargestChange").def(nb::init<>());
    bind_set<Euclidean>(m, "Euclidean").def(nb::init<>());
    bind_set<Moved>(m, "Moved").def(nb::init<>());
    bind_set<Tail>(m, "Tail").def(nb::init<>());
    bind_set<Contamination>(m, "Contamination").def(nb::init<>());
}

}  // namespace robustmdp
