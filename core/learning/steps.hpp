// Step sizes: min(cap, scale * (offset + growth n)^-power), where n counts from 0.
#pragma once

#include "../lanes.hpp"

#include <vector>

namespace robustmdp {

class Steps {
public:
    double per_weight;  // where positive, the size is multiplied by it and by the pair's weight in normal form

    Steps(double scale, double offset, double growth, double power, double cap, double per_weight)
        : per_weight(per_weight), scale_(scale), offset_(offset), growth_(growth), power_(power), cap_(cap),
          first_(TABULATED) {
        for (uint64_t n = 0; n < TABULATED; ++n) first_[n] = formula(static_cast<double>(n));
    }

    double operator()(uint64_t n) const { return n < TABULATED ? first_[n] : formula(static_cast<double>(n)); }

    double formula(double n) const {
        const double base = offset_ + growth_ * n;
        return smaller(scale_ / raise(base), cap_);
    }

    // The size for a dual variable in units of its weight: alpha/weight, discounted where it does not grow with it.
    double relative(double size, double discount, double inverse_weight) const {
        return per_weight > 0.0 ? size * per_weight : discount * size * inverse_weight;
    }

    // The same in units of outcomes.
    double absolute(double size, double discount, double weight) const {
        return per_weight > 0.0 ? size * per_weight * weight : discount * size;
    }

private:
    static constexpr uint64_t TABULATED = 1 << 16;

    // base^power; the usual powers by square roots
    double raise(double base) const {
        if (power_ == 1.0) return base;
        if (power_ == 0.5) return root(base);
        if (power_ == 0.75) return root(base) * root(root(base));
        return power_ == 0.0 ? 1.0 : exponential(power_ * logarithm(base));
    }

    double scale_, offset_, growth_, power_, cap_;
    std::vector<double> first_;
};

}  // namespace robustmdp
