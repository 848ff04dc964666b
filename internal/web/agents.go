package web

func (p *Pages) mountAgents() {}
