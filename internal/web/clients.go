package web

func (p *Pages) mountClients() {}
