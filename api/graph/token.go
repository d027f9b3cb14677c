package graph

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// token is a lexical token of a query.
type token struct {
	kind       tokenKind
	text       string // of names and numbers
	start, end int    // bytes
	line       int    // from 1
	column     int    // in characters, from 1
}

// tokenKind is a punctuator, or one of the following.
type tokenKind byte

const (
	aName   tokenKind = 'n'
	aNumber tokenKind = '0'
	aString tokenKind = '"'
	aSpread tokenKind = '.'
)

// place is where something is in a query.
type place struct{ line, column int }

// syntax is an error with its place.
type syntax struct {
	fault
	at place
}

func (t token) refuse(code, format string, a ...any) error {
	return syntax{fault{code, fmt.Sprintf(format, a...)}, place{t.line, t.column}}
}

// scanner reads tokens by the grammar of GraphQL. The library's own scanner takes more, like
// hexadecimal numbers, and would end the process's part of the work with a panic; what passes here
// it reads the same way.
type scanner struct {
	text         string
	at           int
	line, column int
}

// scan returns the tokens of a query, at most MaxTokens.
func scan(text string) ([]token, error) {
	s := &scanner{text: text, line: 1, column: 1}
	var all []token
	for {
		t, ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return all, nil
		}
		if len(all) == MaxTokens {
			return nil, t.refuse(codeLimit, "query has more than %d words and signs", MaxTokens)
		}
		all = append(all, t)
	}
}

// step passes n bytes that are one character.
func (s *scanner) step(n int) {
	if s.text[s.at] == '\n' {
		s.line, s.column = s.line+1, 0
	}
	s.at += n
	s.column++
}

func (s *scanner) rest() string { return s.text[s.at:] }

func (s *scanner) next() (t token, ok bool, err error) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t' || c == ',' || c == '\n' || c == '\r':
			s.step(1)
			continue
		case c == '#':
			if err := s.comment(); err != nil {
				return t, false, err
			}
			continue
		}
		break
	}
	t = token{start: s.at, line: s.line, column: s.column}
	if s.at == len(s.text) {
		return t, false, nil
	}
	switch c := s.text[s.at]; {
	case isLetter(c):
		t.kind = aName
		for s.at < len(s.text) && (isLetter(s.text[s.at]) || isDigit(s.text[s.at])) {
			s.step(1)
		}
		if s.at-t.start > maxNameBytes {
			return t, false, t.refuse(codeLimit, "name is longer than %d characters", maxNameBytes)
		}
	case isDigit(c) || c == '-':
		t.kind = aNumber
		err = s.number(t)
	case c == '"':
		t.kind = aString
		err = s.string(t)
	case c == '.':
		t.kind = aSpread
		if len(s.rest()) < 3 || s.rest()[:3] != "..." {
			return t, false, t.refuse(codeInvalid, "syntax error: unexpected %q", '.')
		}
		s.step(1)
		s.step(1)
		s.step(1)
	case c < utf8.RuneSelf && isPunctuator(c):
		t.kind = tokenKind(c)
		s.step(1)
	default:
		r, _ := utf8.DecodeRuneInString(s.rest())
		return t, false, t.refuse(codeInvalid, "syntax error: unexpected %q", r)
	}
	t.end, t.text = s.at, s.text[t.start:s.at]
	return t, err == nil, err
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func isPunctuator(c byte) bool {
	switch c {
	case '!', '$', '&', '(', ')', ':', '=', '@', '[', ']', '{', '|', '}':
		return true
	}
	return false
}

// character passes one that may be in a string or comment.
func (s *scanner) character(t token) (rune, error) {
	r, n := utf8.DecodeRuneInString(s.rest())
	if r == utf8.RuneError && n < 2 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufeff' {
		return r, t.refuse(codeInvalid, "syntax error: unexpected character %q", r)
	}
	s.step(n)
	return r, nil
}

// comment passes one, up to the end of its line.
func (s *scanner) comment() error {
	t := token{line: s.line, column: s.column}
	for s.at < len(s.text) && s.text[s.at] != '\n' && s.text[s.at] != '\r' {
		if _, err := s.character(t); err != nil {
			return err
		}
	}
	return nil
}

// number passes an Int or Float, and refuses what no 64 bits hold.
func (s *scanner) number(t token) error {
	digits := func() bool {
		from := s.at
		for s.at < len(s.text) && isDigit(s.text[s.at]) {
			s.step(1)
		}
		return s.at > from
	}
	is := func(signs string) bool {
		if s.at < len(s.text) {
			for i := range len(signs) {
				if s.text[s.at] == signs[i] {
					return true
				}
			}
		}
		return false
	}
	if is("-") {
		s.step(1)
	}
	first, whole := s.at, true
	ok := digits() && (s.text[first] != '0' || s.at == first+1)
	if ok && is(".") {
		whole = false
		s.step(1)
		ok = digits()
	}
	if ok && is("eE") {
		whole = false
		s.step(1)
		if is("+-") {
			s.step(1)
		}
		ok = digits()
	}
	if ok && s.at < len(s.text) {
		ok = !isLetter(s.text[s.at]) && s.text[s.at] != '.'
	}
	if ok {
		var err error
		if whole {
			_, err = strconv.ParseInt(s.text[t.start:s.at], 10, 64)
		} else {
			_, err = strconv.ParseFloat(s.text[t.start:s.at], 64)
		}
		ok = err == nil
	}
	if !ok {
		return t.refuse(codeInvalid, "syntax error: %s is no number", printed(s.text[t.start:min(len(s.text), s.at+1)]))
	}
	return nil
}

// string passes a string or a block string.
func (s *scanner) string(t token) error {
	open := t.refuse(codeInvalid, "syntax error: string has no end")
	if len(s.rest()) >= 3 && s.rest()[:3] == `"""` {
		for range 3 {
			s.step(1)
		}
		for s.at < len(s.text) {
			if rest := s.rest(); len(rest) >= 3 && rest[:3] == `"""` {
				for range 3 {
					s.step(1)
				}
				return nil
			}
			r, err := s.character(t)
			if err != nil {
				return err
			}
			if r == '\\' {
				// The library ends a block string at an escaped end, too.
				return t.refuse(codeInvalid, `syntax error: a block string cannot have \ here; use "…"`)
			}
		}
		return open
	}
	s.step(1)
	for s.at < len(s.text) {
		r, err := s.character(t)
		switch {
		case err != nil:
			return err
		case r == '"':
			return nil
		case r == '\n' || r == '\r':
			return open
		case r == '\\':
			if s.at == len(s.text) {
				return open
			}
			switch s.text[s.at] {
			case '"', '\\', 'b', 'f', 'n', 'r', 't', 'u':
				s.step(1)
			default:
				return t.refuse(codeInvalid, `syntax error: there is no \%c; use \u00xx`, s.text[s.at])
			}
		}
	}
	return open
}
