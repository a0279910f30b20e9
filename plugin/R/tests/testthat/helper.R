library(xgboost)

with_stock <- function(code) {
  take_over(FALSE)
  on.exit(take_over(TRUE))
  force(code)
}

uses_plugin <- function(booster) {
  grepl("gpu_exact_train_param", jsonlite::toJSON(xgb.config(booster)), fixed = TRUE)
}

rng_state <- function(booster) xgb.config(booster)$learner$generic_param$rng_state

# `train` makes a booster from nothing. Models must be equal byte for byte, and the state of
# XGBoost's generator of random numbers too. Gives the one that was made with the plugin.
expect_same_as_stock <- function(train) {
  theirs <- with_stock(train())
  ours <- train()
  expect_true(uses_plugin(ours))
  expect_false(uses_plugin(theirs))
  expect_identical(xgb.save.raw(ours, "json"), xgb.save.raw(theirs, "json"))
  expect_identical(rng_state(ours), rng_state(theirs))
  invisible(ours)
}

# A table of `n` rows and `m` columns with missing values, targets `y` and classes `label`. Sums of
# gradients are exact: targets are multiples of 1/16.
random_table <- function(seed, n = 200, m = 6) {
  set.seed(seed)
  x <- matrix(round(rnorm(n * m), 1), n, m, dimnames = list(NULL, paste0("f", seq_len(m))))
  x[runif(n * m) < 0.2] <- NA
  list(x = x, y = sample(-32:32, n, TRUE) / 16, label = sample(0:1, n, TRUE))
}

# What XGBoost prints to stderr while `code` runs.
messages_of <- function(code) {
  file <- tempfile()
  connection <- file(file, "w")
  sink(connection, type = "message")
  on.exit({
    sink(type = "message")
    close(connection)
  })
  force(code)
  flush(connection)
  paste(readLines(file), collapse = "\n")
}

# Run code in an R of its own, without plugin and xgboost; gives the lines that it prints.
run_r <- function(code) {
  file <- tempfile(fileext = ".R")
  writeLines(code, file)
  system2(file.path(R.home("bin"), "Rscript"), file, stdout = TRUE)
}
