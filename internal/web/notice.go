package web

import "strings"

// notice is what the last form did, with a link to what it made, if it made something.
type notice string

// linkMark stands between the words of a notice and its link. No text of people has it.
const linkMark = "\x1f"

// linked adds a link to a message.
func linked(message, href string) string { return message + linkMark + href }

// Text is the message without the link.
func (n notice) Text() string {
	text, _ := n.split()
	return text
}

// Href is where the link leads; empty: there is none.
func (n notice) Href() string {
	_, href := n.split()
	return href
}

func (n notice) split() (text, href string) {
	if i := strings.LastIndex(string(n), linkMark); i >= 0 {
		return string(n[:i]), string(n[i+len(linkMark):])
	}
	return string(n), ""
}
