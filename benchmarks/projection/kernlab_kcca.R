# Fits kernel CCA with kernlab; called by cca.py, which left the data here.
arguments <- commandArgs(TRUE)
folder <- arguments[1]
gamma <- as.numeric(arguments[2])
count <- as.integer(arguments[3])
penalty <- as.numeric(arguments[4])
suppressMessages(library(kernlab))
place <- function(name) file.path(folder, name)
shape <- scan(place("shape"), quiet = TRUE)
view <- function(name) matrix(readBin(place(name), "double", prod(shape)), shape[1], byrow = TRUE)
X <- view("X")
Y <- view("Y")
clock <- system.time(machine <- kcca(X, Y,
  kernel = "rbfdot", kpar = list(sigma = gamma), gamma = penalty, ncomps = 2 * count
))
# every correlation comes twice, once with each sign; a pair of variates goes with the positive one
kept <- which(kcor(machine) > 0)[seq_len(count)]
writeBin(clock[["elapsed"]], place("seconds"))
writeBin(as.double(xcoef(machine)[, kept]), place("coef_x"))
writeBin(as.double(ycoef(machine)[, kept]), place("coef_y"))
