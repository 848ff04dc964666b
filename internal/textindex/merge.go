package textindex

import (
	"errors"
	"fmt"
)

// Merge returns the pages of a segment with the documents of others that are not dead, or nil if there
// are none. The views must have all pages. There must be at most MaxDocs such documents.
func Merge(views []*View) ([][]byte, error) {
	pages, err := merge(views)
	return pages, whole(err)
}

// whole returns the error of an operation whose views have all pages that there are.
func whole(err error) error {
	if errors.Is(err, errMissing) {
		return damaged("a page is missing")
	}
	return err
}

func merge(views []*View) ([][]byte, error) {
	ids, places, err := mergeIDs(views)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if len(ids) > MaxDocs {
		return nil, fmt.Errorf("%d documents do not fit into a segment", len(ids))
	}
	all := map[kind]postings{inText: {}, inTitle: {}, tagged: {}} // prefixes are made anew
	for i, v := range views {
		for n := range v.firstKeys {
			page, err := v.page(n + 1)
			if err != nil {
				return nil, err
			}
			var failed error
			err = scan(page, "", func(e entry) bool {
				failed = v.copyTo(all, &e, places[i])
				return failed == nil
			})
			if err != nil {
				return nil, err
			}
			if failed != nil {
				return nil, failed
			}
		}
	}
	return encode(ids, all), nil
}

// copyTo adds the documents of an entry at their new places.
func (v *View) copyTo(all map[kind]postings, e *entry, places []int32) error {
	if e.key == "" {
		return damaged("a page of the dictionary")
	}
	to := all[kind(e.key[0])]
	if to == nil {
		return nil
	}
	data, err := v.dataOf(e)
	if err != nil {
		return err
	}
	var list *posting // a term whose documents are all dead is left out
	return eachDoc(data, v.docs, func(doc int) {
		if place := places[doc]; place >= 0 {
			if list == nil {
				list = to.of(e.key[1:])
			}
			list.add(int(place))
		}
	})
}

// mergeIDs returns the ids of the new segment, and the place of each document in it, or -1.
func mergeIDs(views []*View) (ids []string, places [][]int32, err error) {
	next, lists := make([]int, len(views)), make([][]string, len(views))
	for i, v := range views {
		places = append(places, make([]int32, v.docs))
		for p := range v.firstIDs {
			list, err := v.idsOf(1 + len(v.firstKeys) + p)
			if err != nil {
				return nil, nil, err
			}
			lists[i] = append(lists[i], list...)
		}
		if len(lists[i]) != v.docs {
			return nil, nil, damaged("the pages of ids")
		}
	}
	for {
		at := -1
		for i := range views {
			if next[i] < len(lists[i]) && (at < 0 || lists[i][next[i]] < lists[at][next[at]]) {
				at = i
			}
		}
		if at < 0 {
			return ids, places, nil
		}
		doc := next[at]
		next[at]++
		if views[at].dead.Has(doc) {
			places[at][doc] = -1
			continue
		}
		id := lists[at][doc]
		if len(ids) > 0 && ids[len(ids)-1] >= id {
			return nil, nil, damaged("the order of ids")
		}
		places[at][doc] = int32(len(ids)) // at most the number of documents
		ids = append(ids, id)
	}
}

// Verify decodes all pages of a view, which must have them, and returns the ids of the documents that are
// not dead.
func Verify(v *View) ([]string, error) {
	ids, err := verify(v)
	return ids, whole(err)
}

func verify(v *View) ([]string, error) {
	ids, _, err := mergeIDs([]*View{v})
	if err != nil {
		return nil, err
	}
	for n := range v.firstKeys {
		page, err := v.page(n + 1)
		if err != nil {
			return nil, err
		}
		first := true
		var failed error
		err = scan(page, "", func(e entry) bool {
			if first && e.key != v.firstKeys[n] {
				failed = damaged("a page of the dictionary")
			}
			first = false
			if failed == nil {
				_, failed = v.setOf(&e)
			}
			return failed == nil
		})
		switch {
		case err != nil:
			return nil, err
		case failed != nil:
			return nil, failed
		case first:
			return nil, damaged("a page of the dictionary")
		}
	}
	return ids, nil
}
