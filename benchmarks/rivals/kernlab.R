# Fits one support vector classifier with kernlab; called by kernlab.py, which left the data here.
arguments <- commandArgs(TRUE)
folder <- arguments[1]
gamma <- as.numeric(arguments[2])
C <- as.numeric(arguments[3])
suppressMessages(library(kernlab))
place <- function(name) file.path(folder, name)
shape <- scan(place("shape"), quiet = TRUE)
X <- matrix(readBin(place("X"), "double", prod(shape)), shape[1], byrow = TRUE)
y <- factor(readBin(place("y"), "integer", shape[1]))
clock <- system.time(machine <- ksvm(X, y,
  type = "C-svc", kernel = "rbfdot", kpar = list(sigma = gamma), C = C, tol = 1e-3,
  cache = 2000, scaled = FALSE, fit = FALSE
))
writeBin(c(clock[["elapsed"]], b(machine)[1]), place("numbers"))
writeBin(coef(machine)[[1]], place("coef"))
writeBin(alphaindex(machine)[[1]], place("index"))
