module github.com/anteroom/anteroom

go 1.27.4
