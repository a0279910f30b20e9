library(testthat)
library(xgboostgpuexact)
test_check("xgboostgpuexact")
