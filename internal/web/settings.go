package web

func (p *Pages) mountSettings() {}
