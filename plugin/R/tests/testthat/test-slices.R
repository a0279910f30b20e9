# Codes 0, 1 and 2 have the targets 0, 1 and 0: as categories one split tells them apart without a
# rest, as numbers none does.
codes <- rep(0:2, 20)
targets <- rep(c(0, 1, 0), 20)
as_stump <- list(tree_method = "exact", nthread = 1, max_depth = 1, eta = 1, reg_lambda = 0,
                 base_score = 0)
tables <- list(
  codes = xgb.DMatrix(matrix(codes), label = targets, feature_types = "c", nthread = 1),
  factor = xgb.DMatrix(data.frame(city = factor(codes)), label = targets, nthread = 1)
)

# Without a GPU they are refused, slices too: none is trained as numbers.
expect_categories <- function(fit, expectation) {
  if (device_status()$usable) {
    expectation(fit())
  } else {
    expect_error(fit(), "categorical features")
  }
}

test_that("xgb.slice.DMatrix() keeps categories", {
  for (d in tables) {
    expect_categories(
      function() xgb.train(as_stump, xgb.slice.DMatrix(d, 1:7), 1, verbose = 0),
      function(booster) {
        expect_identical(as.numeric(predict(booster, d)), targets)
        expect_match(xgb.dump(booster), ":{1}]", fixed = TRUE, all = FALSE)
      }
    )
  }
})

test_that("xgb.cv() keeps categories", {
  for (d in tables) {
    set.seed(1)
    expect_categories(
      function() xgb.cv(as_stump, d, 1, nfold = 3, metrics = "rmse", verbose = FALSE),
      function(cv) expect_identical(cv$evaluation_log$test_rmse_mean, 0)
    )
  }
})
