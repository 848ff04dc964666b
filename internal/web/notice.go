package web

import "strings"

// notice is what the last form did, with a link to what it made, if it made something.
type notice string

// linkMark stands between the words of a notice and its link. No text of people has it.
const linkMark = "\x1f"

// refusalMark begins the notice of a form that did nothing.
const refusalMark = "\x1e"

// refusal is a message that says why nothing was done.
func refusal(message string) string { return refusalMark + message }

// Refused reports whether the form did nothing.
func (n notice) Refused() bool { return strings.HasPrefix(string(n), refusalMark) }

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
	n = notice(strings.TrimPrefix(string(n), refusalMark))
	if i := strings.LastIndex(string(n), linkMark); i >= 0 {
		return string(n[:i]), string(n[i+len(linkMark):])
	}
	return string(n), ""
}
