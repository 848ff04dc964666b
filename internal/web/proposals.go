package web

func (p *Pages) mountProposals() {}
