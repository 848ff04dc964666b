package web

func (p *Pages) mountKeys() {}
