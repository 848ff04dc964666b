module github.com/parley-dev/parley/release

go 1.26.0
