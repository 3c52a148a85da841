#include "../divergences/cressie_read.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_kullback_leibler(nb::module_& m) {
    bind_divergence<KullbackLeibler>(m, "KullbackLeibler");
    bind_divergence<Hellinger>(m, "Hellinger");
}

}  // namespace robustmdp
