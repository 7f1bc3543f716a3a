"""Delta, Iceberg and S3, on the newest Spark that all of them support: ``make test-lake``."""
