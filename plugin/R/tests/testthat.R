library(testthat)
library(xgboostgpuexact)
cat("module built of", xgboostgpuexact:::source_hash(), "\n")
test_check("xgboostgpuexact")
