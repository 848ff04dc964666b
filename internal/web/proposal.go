package web

func (p *Pages) mountProposal() {}
