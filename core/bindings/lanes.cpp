#include "../lanes.hpp"

#include "arrays.hpp"

namespace robustmdp {

namespace {

// out = f(x), four numbers at a time as in sweeps; the rest one by one, with the same bits.
template <class Function> void apply(Function f, Numbers x, Array<double> out) {
    require(x.size() == out.size(), "x and out must be equally long");
    size_t i = 0;
    for (; i + WIDTH <= x.size(); i += WIDTH) {
        const Lanes y = f(Lanes{x(i), x(i + 1), x(i + 2), x(i + 3)});
        for (int l = 0; l < WIDTH; ++l) out(i + l) = y[l];
    }
    for (; i < x.size(); ++i) out(i) = f(x(i));
}

}  // namespace

void bind_lanes(nb::module_& m) {
    m.def("exponential", [](Numbers x, Array<double> out) { apply([](auto y) { return exponential(y); }, x, out); });
    m.def("exponential_less_one",
          [](Numbers x, Array<double> out) { apply([](auto y) { return exponential_less_one(y); }, x, out); });
    m.def("logarithm", [](Numbers x, Array<double> out) { apply([](auto y) { return logarithm(y); }, x, out); });
}

}  // namespace robustmdp
