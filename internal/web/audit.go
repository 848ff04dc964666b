package web

func (p *Pages) mountAudit() {}
