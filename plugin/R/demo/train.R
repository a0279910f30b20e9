# Train on R's table of cars, and tell who grew the trees.
library(xgboost)
library(xgboostgpuexact)  # all it takes

cars <- as.matrix(mtcars)
dtrain <- xgb.DMatrix(cars[, -1], label = cars[, "mpg"])
model <- xgb.train(list(tree_method = "exact", max_depth = 3, learning_rate = 0.3), dtrain, 20)

status <- device_status()
cat("GPU:", if (status$usable) status$text else paste("none,", status$text), "\n")
cat(sprintf("%.2f miles a gallon off on average\n", mean(abs(predict(model, dtrain) - cars[, "mpg"]))))
