# Parts rows with kernlab's kernel K-means; called by kmeans.py, which left the data here.
arguments <- commandArgs(TRUE)
folder <- arguments[1]
gamma <- as.numeric(arguments[2])
count <- as.integer(arguments[3])
suppressMessages(library(kernlab))
place <- function(name) file.path(folder, name)
shape <- scan(place("shape"), quiet = TRUE)
X <- matrix(readBin(place("X"), "double", prod(shape)), shape[1], byrow = TRUE)
# it fails where a cluster is left with a single row: such starts are not counted
for (seed in 0:20) {
  set.seed(seed)
  clock <- system.time(parted <- try(
    kkmeans(X, count, kernel = "rbfdot", kpar = list(sigma = gamma)),
    silent = TRUE
  ))
  if (!inherits(parted, "try-error")) break
}
writeBin(clock[["elapsed"]], place("seconds"))
writeBin(as.integer(parted@.Data), place("labels"))
