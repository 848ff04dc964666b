package web

import "strings"

// notice describes the effect of the last form, with an optional link to the result.
type notice string

// linkMark separates the text of a notice from its link. User text cannot contain it.
const linkMark = "\x1f"

// refusalMark starts the notice of a form that was rejected.
const refusalMark = "\x1e"

// refusal marks a message as the reason why nothing was done.
func refusal(message string) string { return refusalMark + message }

// Refused reports whether the form was rejected.
func (n notice) Refused() bool { return strings.HasPrefix(string(n), refusalMark) }

// linked adds a link to a message.
func linked(message, href string) string { return message + linkMark + href }

// Text returns the message without the link.
func (n notice) Text() string {
	text, _ := n.split()
	return text
}

// Href returns the link, or "" if there is none.
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
