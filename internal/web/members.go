package web

func (p *Pages) mountMembers() {}
