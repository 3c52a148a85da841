// The numbers of one state whose actions share the noise.
#pragma once

#include "../matrix_game.hpp"
#include "noise_step.hpp"

namespace robustmdp {

// OF_ROW numbers are what a set remembers of a row; KINKS policies are those whose answers nature mixed.
template <int OF_ROW, int KINKS> struct NoiseWork {
    explicit NoiseWork(const Model& model) : length(model.longest_row) {
        int64_t pairs = 0;
        for (int64_t s = 0; s < model.n_states; ++s)
            pairs = std::max(model.state_ptr[s + 1] - model.state_ptr[s], pairs);
        padded = (pairs + WIDTH - 1) / WIDTH * WIDTH;
        passes = static_cast<int>(40 + 4 * std::min(pairs, length));
        game = MatrixGame(pairs, passes);
        if (KINKS == 0) step = NoiseStep(pairs, length);
        is_useless.resize(pairs);
        row.resize(2 * length);
        for (auto* numbers : {&share, &known, &trial, &target, &entries, &mean}) numbers->resize(padded);
        kinks.resize(KINKS * padded);
        if (KINKS > 0) tried.resize(passes * padded);
        noise.resize((passes + 1) * length);
        payoff.resize((passes + 1) * padded);
        answers.resize(pairs * length);
    }

    double* noise_of(int cut) { return noise.data() + cut * length; }
    double* payoff_of(int cut) { return payoff.data() + cut * padded; }

    int64_t length, padded;
    int passes;  // policies that are tried at most
    double start[OF_ROW + 1];
    double lowest, size;                // of the outcomes of actions that can be of use
    std::vector<double> row;            // p and mixed outcomes
    std::vector<double> share, known;   // the policy, and that of the last sweep
    std::vector<double> trial, target;  // the policy that nature answers, and where a step leads
    std::vector<double> noise, payoff;  // nature's answers to trials, and what the actions earn under them
    std::vector<double> answers, mean;  // rows one after the other; their means less the minimum
    std::vector<double> entries;        // of a column of the game
    std::vector<double> kinks, tried;   // policies whose answers nature mixed in the last sweep, and all trials
    int kink_count = 0;
    std::vector<uint8_t> is_useless;  // whether another action's worst outcome is better than all of its own
    MatrixGame game{0, 0};
    NoiseStep step{0, 0};
};

}  // namespace robustmdp
