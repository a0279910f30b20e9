model_of <- function(seed, ..., callbacks = list()) {
  t <- random_table(seed)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  p <- list(tree_method = "exact", nthread = 1, seed = seed, subsample = 0.5, verbosity = 1, ...)
  xgb.save.raw(xgb.train(p, d, 2, verbose = 0, callbacks = callbacks))
}

test_that("workers that are forked after the first tree warn, and train on the CPU", {
  skip_if_not(device_status()$usable, "no GPU is usable")
  expected <- lapply(1:4, model_of)
  # A fit that ends with an error leaves its table on the device until R collects the booster,
  # which the workers do and must not touch that table.
  stops <- xgb.Callback("stops", f_after_iter = function(...) stop("enough"))
  expect_error(model_of(5, callbacks = list(stops)), "enough")
  workers <- parallel::mclapply(1:4, function(i) {
    gc()
    model <- NULL
    messages <- messages_of(model <- model_of(i))
    error <- tryCatch(model_of(i, gpu_exact_fallback = "error"), error = conditionMessage)
    list(model = model, messages = messages, error = error, status = device_status())
  }, mc.cores = 2, mc.preschedule = FALSE)
  expect_identical(lapply(workers, `[[`, "model"), expected)
  for (worker in workers) {
    expect_match(worker$messages, "forked after CUDA was used.*on the CPU instead")
    expect_match(worker$error, "forked after CUDA was used")
    expect_false(worker$status$usable)
  }
  messages <- messages_of(expect_identical(lapply(1:4, model_of), expected))
  expect_identical(messages, "")  # nothing has happened to the GPU of this process
})

test_that("workers that are forked before the first tree use the GPU", {
  usable <- device_status()$usable
  used <- run_r("
    library(xgboostgpuexact)
    used <- parallel::mclapply(1:2, function(i) device_status()$usable, mc.cores = 2)
    cat(unlist(used))")
  expect_identical(used, paste(usable, usable))
})

test_that("workers of a PSOCK cluster load the package themselves", {
  cluster <- tryCatch(suppressWarnings(parallel::makePSOCKcluster(1)),
                      error = function(e) skip(conditionMessage(e)))
  on.exit(parallel::stopCluster(cluster))
  parallel::clusterCall(cluster, function(paths) .libPaths(paths), .libPaths())
  parallel::clusterEvalQ(cluster, library(xgboostgpuexact))
  usable <- parallel::clusterEvalQ(cluster, device_status()$usable)[[1]]
  expect_identical(usable, device_status()$usable)
})
