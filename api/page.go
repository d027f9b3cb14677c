package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Bounds of the parameter per_page, which is a multiple of MinPerPage.
const (
	MinPerPage     = 5
	MaxPerPage     = 1000
	DefaultPerPage = 25
)

// Page is the part of a list that was asked for.
type Page struct {
	Number  int // from 1
	PerPage int
}

// PageInfo is the result_info of a list.
type PageInfo struct {
	Page       int `json:"page" min:"1"`
	PerPage    int `json:"per_page" min:"5"`
	Count      int `json:"count"`
	TotalCount int `json:"total_count"`
	TotalPages int `json:"total_pages"`
}

// PageOf reads page and per_page. A wrong value is an error: a client that got another page than it asked for would
// take it for the right one.
func PageOf(q url.Values) (Page, error) {
	p := Page{Number: 1, PerPage: DefaultPerPage}
	if s := q.Get("page"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil || n == 0 {
			return p, Query("page", "is not the number of a page", "1, 2, 3 …")
		}
		p.Number = int(n)
	}
	if s := q.Get("per_page"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil || n < MinPerPage || n > MaxPerPage || n%MinPerPage != 0 {
			return p, Query("per_page", "is out of range", fmt.Sprintf("a multiple of %d, %d to %d", MinPerPage, MinPerPage, MaxPerPage))
		}
		p.PerPage = int(n)
	}
	return p, nil
}

// Query is the error of a query parameter.
func Query(name, problem, fix string) error {
	return Refuse(http.StatusBadRequest, CodeInvalid, name+": "+problem+" ("+fix+"): invalid data")
}

// Part returns the page of a list and its result_info. Past the end there is an empty page:
// clients ask for one more until they get it.
func Part[T any](all []T, p Page) ([]T, PageInfo) {
	from := min(len(all), (p.Number-1)*p.PerPage)
	part := all[from:min(len(all), from+p.PerPage)]
	return part, PageInfo{Page: p.Number, PerPage: p.PerPage, Count: len(part), TotalCount: len(all),
		TotalPages: (len(all) + p.PerPage - 1) / p.PerPage}
}
