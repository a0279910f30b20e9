# A booster of an R of its own, and whether the plugin grew its trees: TRUE or FALSE.
ask_plugin <- "
library(xgboost)
d <- xgb.DMatrix(matrix(1:20, 10), label = 1:10, nthread = 1)
b <- xgb.train(list(tree_method = 'exact', nthread = 1), d, 1, verbose = 0)
cat(grepl('gpu_exact', jsonlite::toJSON(xgb.config(b))), '\\n')"

test_that("loading takes over, unloading gives back", {
  load <- "library(xgboostgpuexact)"
  off <- "Sys.setenv(GPU_EXACT_TAKEOVER = '0')"
  unload <- "unloadNamespace('xgboostgpuexact')"
  expect_identical(trimws(run_r(c(load, ask_plugin))), "TRUE")
  expect_identical(trimws(run_r(c(off, load, ask_plugin))), "FALSE")
  expect_identical(trimws(run_r(c(load, unload, ask_plugin, load, ask_plugin))), c("FALSE", "TRUE"))
})

test_that("take_over() takes what is yes or no, and nothing else", {
  load <- "library(xgboostgpuexact)"
  for (yes in c("1", "TRUE")) {
    expect_identical(trimws(run_r(c(load, "take_over(FALSE)", sprintf("take_over(%s)", yes), ask_plugin))),
                     "TRUE")
  }
  expect_identical(trimws(run_r(c(load, "take_over(0)", ask_plugin))), "FALSE")
  for (other in list("yes", NA, NULL, c(TRUE, FALSE), list(TRUE))) {
    expect_error(take_over(other), "set it to TRUE or FALSE")
  }
})

test_that("an environment that is wrong is an error, and nothing is taken over", {
  load <- "try(loadNamespace('xgboostgpuexact'), silent = TRUE)"
  for (name in c("GPU_EXACT_DEVICE", "GPU_EXACT_TAKEOVER")) {
    bad <- sprintf("Sys.setenv(%s = 'tpu')", name)
    expect_identical(trimws(run_r(c(bad, load, ask_plugin))), "FALSE")
  }
})

test_that("the lines of README.md are all it takes", {
  t <- random_table(11)
  dtrain <- xgb.DMatrix(t$x, label = t$label, nthread = 1)
  library(xgboost)
  library(xgboostgpuexact)  # all it takes
  model <- xgb.train(list(tree_method = "exact", objective = "binary:logistic"), dtrain, 100)
  expect_true(uses_plugin(model))
})

test_that("the demo runs", {
  said <- run_r("source(system.file('demo', 'train.R', package = 'xgboostgpuexact'))")
  expect_match(paste(said, collapse = " "), "GPU: .* 0\\.\\d+ miles a gallon off")
})

test_that("a module that cannot be loaded is named, with the remedy", {
  code <- "Sys.setenv(GPU_EXACT_MODULE = '/absent.so')
           tryCatch(loadNamespace('xgboostgpuexact'), error = function(e) cat(conditionMessage(e)))"
  expect_match(paste(run_r(code), collapse = " "), "/absent.so.*Install xgboostgpuexact again")
})

test_that("a stripped xgboost is told so, with the remedy", {
  strip <- Sys.which("strip")
  skip_if_not(nzchar(strip), "there is no strip")
  stripped <- tempfile("library")
  dir.create(stripped)
  file.copy(find.package("xgboost"), stripped, recursive = TRUE)
  system2(strip, c("--strip-unneeded", file.path(stripped, "xgboost/libs/xgboost.so")))
  code <- sprintf(".libPaths(c('%s', .libPaths()))
    tryCatch(loadNamespace('xgboostgpuexact'), error = function(e) cat(conditionMessage(e)))", stripped)
  expect_match(paste(run_r(code), collapse = " "),
               "xgboost.so has no symbol table, it was stripped.*Install R's package xgboost from source")
})

test_that("models load and predict without the plugin", {
  t <- random_table(3)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  b <- xgb.train(list(tree_method = "exact", nthread = 1, max_depth = 3), d, 3, verbose = 0)
  file <- tempfile(fileext = ".rds")
  saveRDS(b, file)
  expect_identical(predict(readRDS(file), t$x), predict(b, t$x))
  answer <- run_r(sprintf("
    b <- readRDS('%s')
    p <- xgboost:::predict.xgb.Booster(b, matrix(0, 2, 6))
    stopifnot(!'xgboostgpuexact' %%in%% loadedNamespaces())
    cat(format(p, digits = 15))", file))
  expected <- paste(format(predict(b, matrix(0, 2, 6)), digits = 15), collapse = " ")
  expect_identical(answer, expected)
})

test_that("device_status() and default_device()", {
  status <- device_status()
  expect_true(is.logical(status$usable) && nzchar(status$text))
  for (other in list("a", "0", NA, NULL, 0.5, -2, c(0, 1), 1e9, TRUE)) {
    expect_error(device_status(other), "give -1, 0, 1, ...", fixed = TRUE)
  }
  expect_error(default_device("gpu"), "`gpu` is no device for exact boosters")
  t <- random_table(10)
  expect_same_as_stock(function() {
    default_device("cuda")
    on.exit(default_device("cpu"))
    xgb.train(list(tree_method = "exact", nthread = 1, seed = 1, verbosity = 0),
              xgb.DMatrix(t$x, label = t$y, nthread = 1), 3, verbose = 0)
  })
})

test_that("what XGBoost refuses is an R error in its words, and the session goes on", {
  t <- random_table(5)
  p <- list(tree_method = "exact", nthread = 1)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  gradient_based <- list(subsample = 0.5, sampling_method = "gradient_based")
  expect_error(xgb.train(c(p, gradient_based), d, 1, verbose = 0), "Only uniform sampling")
  expect_length(predict(xgb.train(p, d, 1, verbose = 0), t$x), 200)
})

test_that("factors are categories, which XGBoost's own builder does not know", {
  t <- random_table(5)
  d <- xgb.DMatrix(data.frame(a = factor(t$label), b = t$y), label = t$y, nthread = 1)
  train <- function() xgb.train(list(tree_method = "exact", nthread = 1), d, 1, verbose = 0)
  if (device_status()$usable) {
    expect_length(predict(train(), d), 200)
  } else {
    expect_error(train(), "categorical")
  }
})

test_that("an error instead of the CPU, where no GPU is usable", {
  status <- device_status()
  skip_if(status$usable, "a GPU is usable")
  t <- random_table(6)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  p <- c(xgb.params(tree_method = "exact", nthread = 1), gpu_exact_fallback = "error")
  expect_error(xgb.train(p, d, 1, verbose = 0), status$text, fixed = TRUE)
})

test_that("too little device memory: the remedy names gc()", {
  skip_if_not(startsWith(device_status()$text, "reference builder"), "needs a GPU that is full")
  t <- random_table(11)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  Sys.setenv(GPU_EXACT_REFERENCE_ENTRIES = "10")
  on.exit(Sys.unsetenv("GPU_EXACT_REFERENCE_ENTRIES"))
  p <- list(tree_method = "exact", nthread = 1)
  expect_error(xgb.train(p, d, 1, verbose = 0), "Out of device memory.*gc()")
})
