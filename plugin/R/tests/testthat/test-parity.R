random_params <- function(seed, m) {
  set.seed(seed)
  pick <- function(...) sample(c(...), 1)
  p <- list(tree_method = "exact", nthread = 1, base_score = 0, max_depth = pick(1, 2, 4, 6, 9),
            eta = pick(0.3, 1), reg_lambda = pick(0, 1, 0.37), reg_alpha = pick(0, 0, 0.5),
            gamma = pick(0, 0, 0.5, 3), min_child_weight = pick(0, 1, 2.5),
            num_parallel_tree = pick(1, 1, 3), subsample = pick(1, 0.5),
            colsample_bytree = pick(1, 0.6), colsample_bylevel = pick(1, 0.6))
  if (runif(1) < 0.3) p$monotone_constraints <- sample(-1:1, m, TRUE)
  if (runif(1) < 0.3) p$interaction_constraints <- list(0:1, 2:3)
  if (runif(1) < 0.2) p$default_direction <- pick("left", "right")
  p
}

test_that("random problems", {
  for (seed in 1:60) {
    t <- random_table(seed, n = sample(5:400, 1))
    p <- random_params(seed, ncol(t$x))
    expect_same_as_stock(function() {
      set.seed(seed)  # xgb.train draws XGBoost's `seed` from R's generator
      xgb.train(p, xgb.DMatrix(t$x, label = t$y, nthread = 1), 1, verbose = 0)
    })
  }
})

test_that("objectives, sparse matrices, data frames, weights", {
  t <- random_table(1)
  p <- list(tree_method = "exact", nthread = 1, max_depth = 4, subsample = 0.7, seed = 5)
  sparse <- as(ifelse(is.na(t$x), 0, t$x), "CsparseMatrix")
  expect_same_as_stock(function() {
    d <- xgb.DMatrix(sparse, label = t$label + (t$y > 1), weight = rep(1:2, 100), nthread = 1)
    xgb.train(c(p, objective = "multi:softprob", num_class = 3), d, 4, verbose = 0)
  })
  expect_same_as_stock(function() {
    d <- xgb.DMatrix(as.data.frame(t$x), label = t$label, nthread = 1)
    dart <- list(objective = "binary:logistic", booster = "dart", rate_drop = 0.3, verbosity = 0)
    xgb.train(c(p, dart), d, 6, verbose = 0)
  })
  squares <- function(preds, d) {
    list(grad = preds - getinfo(d, "label"), hess = rep(1, length(preds)))
  }
  expect_same_as_stock(function() {
    d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
    xgb.train(c(p, base_score = 0), d, 3, objective = squares, verbose = 0)
  })
})

test_that("xgboost(), xgb.cv(), early stopping, continuation", {
  t <- random_table(2)
  expect_same_as_stock(function() {
    xgboost(t$x, factor(t$label), nrounds = 3, tree_method = "exact", nthreads = 1, max_depth = 3,
            subsample = 0.5, colsample_bylevel = 0.7)
  })
  d <- xgb.DMatrix(t$x, label = t$label, nthread = 1)
  p <- list(tree_method = "exact", nthread = 1, max_depth = 3, objective = "binary:logistic",
            seed = 1)
  log_of_cv <- function() {
    set.seed(3)
    xgb.cv(p, d, 4, nfold = 3, verbose = FALSE)$evaluation_log
  }
  expect_equal(log_of_cv(), with_stock(log_of_cv()))
  expect_same_as_stock(function() {
    first <- xgb.train(p, d, 20, evals = list(train = d), early_stopping_rounds = 2, verbose = 0)
    xgb.train(p, d, 2, xgb_model = first, verbose = 0)
  })
})

test_that("a GPU named twice grows the same trees", {
  t <- random_table(5)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  p <- list(nthread = 1, max_depth = 3, seed = 2, subsample = 0.5, tree_method = "exact")
  shared <- xgb.train(c(p, gpu_exact_devices = "0,0"), d, 3, verbose = 0)
  stock <- with_stock(xgb.train(p, d, 3, verbose = 0))
  expect_identical(xgb.save.raw(shared, "json"), xgb.save.raw(stock, "json"))
})

test_that("the updater has a name of its own", {
  t <- random_table(4)
  d <- xgb.DMatrix(t$x, label = t$y, nthread = 1)
  p <- list(nthread = 1, max_depth = 3, seed = 2, subsample = 0.5)
  named <- xgb.train(c(p, updater = "grow_gpu_exact"), d, 3, verbose = 0)
  stock <- with_stock(xgb.train(c(p, tree_method = "exact"), d, 3, verbose = 0))
  expect_identical(xgb.save.raw(named, "json"), xgb.save.raw(stock, "json"))
})

# Packages that train with xgboost, where this version of them can train with this one of xgboost.
expect_needs_nothing <- function(fit) {
  tryCatch(suppressWarnings(with_stock(fit())),
           error = function(e) skip(paste("fails by itself:", conditionMessage(e))))
  expect_same_as_stock(fit)
}

test_that("caret", {
  skip_if_not_installed("caret")
  t <- random_table(8)
  grid <- data.frame(nrounds = 3, max_depth = 3, eta = 0.3, gamma = 0, colsample_bytree = 0.7,
                     min_child_weight = 1, subsample = 0.7)
  expect_needs_nothing(function() {
    set.seed(1)
    caret::train(t$x, t$y, method = "xgbTree", tuneGrid = grid, tree_method = "exact", nthread = 1,
                 verbosity = 0, trControl = caret::trainControl(method = "none"))$finalModel
  })
})

test_that("parsnip", {
  skip_if_not_installed("parsnip")
  t <- random_table(9)
  spec <- parsnip::boost_tree("regression", trees = 3, tree_depth = 3, sample_size = 0.7)
  spec <- parsnip::set_engine(spec, "xgboost", tree_method = "exact", nthread = 1)
  expect_needs_nothing(function() {
    set.seed(1)
    parsnip::fit_xy(spec, as.data.frame(t$x), t$y)$fit
  })
})
