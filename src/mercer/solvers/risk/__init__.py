"""Newton, LBFGS and stochastic gradients for penalised losses."""
